"""Parsing in a child process with limits on memory and time, so that no file can crash the daemon."""

from ingestd.sdk.formats.parser_process.messages import ParserLimits
from ingestd.sdk.formats.parser_process.pool import ParserPool, Parsers

__all__ = ["ParserLimits", "ParserPool", "Parsers"]
