"""File formats: each reads an open file as chunks of records, with exact text and bounded memory."""

from connectors.formats.format import Format
from connectors.formats.record_chunk import RecordChunk, RecordLocation
from connectors.formats.registry import FORMATS, PATTERNS, ConfiguredFormat, FormatName, resolve_format

__all__ = [
    "FORMATS",
    "PATTERNS",
    "ConfiguredFormat",
    "Format",
    "FormatName",
    "RecordChunk",
    "RecordLocation",
    "resolve_format",
]
