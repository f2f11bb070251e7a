"""File formats: from an open file to stretches of records, exact to the character and bounded in memory."""

from connectors.formats.choice import FORMATS, PATTERNS, ConfiguredFormat, FormatName, format_of
from connectors.formats.format import Format
from connectors.formats.stretch import Place, Stretch

__all__ = [
    "FORMATS",
    "PATTERNS",
    "ConfiguredFormat",
    "Format",
    "FormatName",
    "Place",
    "Stretch",
    "format_of",
]
