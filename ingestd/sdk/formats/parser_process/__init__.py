"""Parsing in a child process with limits on memory and time, so that no file can crash the daemon."""

from ingestd.sdk.formats.parser_process.isolated import IsolatedFormat
from ingestd.sdk.formats.parser_process.limits import ParserLimits
from ingestd.sdk.formats.parser_process.pool import ParserPool, Parsers

__all__ = ["IsolatedFormat", "ParserLimits", "ParserPool", "Parsers"]
