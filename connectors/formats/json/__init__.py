"""JSON: an array of objects in one document, with values exactly as they are written."""

from connectors.formats.json.options import Json
from connectors.formats.json.reader import read_json

__all__ = ["Json", "read_json"]
