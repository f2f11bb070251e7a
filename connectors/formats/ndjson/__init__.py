"""NDJSON: one JSON object in each line, with values exactly as they are written."""

from connectors.formats.ndjson.options import Ndjson

__all__ = ["Ndjson"]
