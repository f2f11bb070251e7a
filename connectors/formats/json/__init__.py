"""JSON: an array of objects somewhere in one document, its values exactly as they were written."""

from connectors.formats.json.options import Json
from connectors.formats.json.reader import read_json

__all__ = ["Json", "read_json"]
