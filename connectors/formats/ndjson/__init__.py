"""NDJSON: one JSON object in each line, with values exactly as they are written."""

from connectors.formats.ndjson.options import Ndjson
from connectors.formats.ndjson.reader import read_ndjson

__all__ = ["Ndjson", "read_ndjson"]
