"""JSON: an array of objects in one document, with values exactly as they are written."""

from connectors.formats.json.options import Json

__all__ = ["Json"]
