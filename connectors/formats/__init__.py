"""File formats: each reads an open file as chunks of records, with exact text and bounded memory."""

from connectors.formats.registry import PATTERNS, SUFFIXES, format_settings, resolve_format
from ingestd.sdk.formats import Format, FormatSetting, RecordChunk, RecordLocation

__all__ = [
    "PATTERNS",
    "SUFFIXES",
    "Format",
    "FormatSetting",
    "RecordChunk",
    "RecordLocation",
    "format_settings",
    "resolve_format",
]
