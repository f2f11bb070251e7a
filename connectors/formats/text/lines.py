"""Lines of text in any format: decoding, why a line can't be used, and the text that is kept of a rejected line."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import Final

from ingestd.sdk.formats.record_chunk import escape_stray_bytes

SHOWN: Final = 1000
"""The number of bytes or characters that are kept of a rejected text."""


def decode_line(line: bytes) -> str:
    """Return a line without its line end and byte order mark. Bytes that are not UTF-8 become lone surrogates."""
    return line.removesuffix(b"\r").removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")


def shown_text(text: str | bytes) -> str:
    r"""Return the beginning of a rejected text. Bytes that are not UTF-8 become escapes such as ``\xff``."""
    shown = text[:SHOWN]
    return escape_stray_bytes(shown if isinstance(shown, str) else shown.decode("utf-8", "surrogateescape"))


def line_fault(line: str, subject: str, encoding: str) -> str:
    """Return why a line can't be read, as a sentence that begins with ``subject``; empty if it can be read."""
    if "\0" in line:
        return f"{subject} holds a NUL byte, which is not allowed in text."
    if not line.isascii() and any("\udc00" <= letter <= "\udfff" for letter in line):
        return f"{subject} holds bytes that are not {encoding.upper()}. Save the file as UTF-8, or set encoding."
    return ""
