"""Why a line of text can't be used, whatever the format of its fields."""

from __future__ import annotations


def line_fault(line: str, subject: str, encoding: str) -> str:
    """Return why a line can't be read, as a sentence that begins with ``subject``; empty if it can."""
    if "\0" in line:
        return f"{subject} holds a NUL byte, which is not allowed in text."
    if not line.isascii() and any("\udc00" <= letter <= "\udfff" for letter in line):
        return f"{subject} holds bytes that are not {encoding.upper()}. Save the file as UTF-8, or set encoding."
    return ""
