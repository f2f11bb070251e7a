"""NDJSON: one JSON object a line, its values exactly as they were written."""

from connectors.formats.ndjson.options import Ndjson
from connectors.formats.ndjson.reader import read_ndjson

__all__ = ["Ndjson", "read_ndjson"]
