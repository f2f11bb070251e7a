"""File formats: from an open file to stretches of records, exact to the character and bounded in memory."""

from connectors.formats.choice import FORMATS, SUFFIXES, Format, FormatName, format_of
from connectors.formats.csv_reader import read_csv
from connectors.formats.ndjson_reader import read_ndjson
from connectors.formats.stretch import Place, Stretch

__all__ = ["FORMATS", "SUFFIXES", "Format", "FormatName", "Place", "Stretch", "format_of", "read_csv", "read_ndjson"]
