"""Rules for texts that clients send: Unicode form, control characters, UUIDs, length (contract G1, G7, G8)."""

from __future__ import annotations

import re
import unicodedata

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


def normalised(text: str) -> str:
    """Return the text in Unicode's form NFC, so that texts that look equal are equal keys."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def has_controls(text: str) -> bool:
    """Return whether the text has a control character (Unicode's category Cc)."""
    return not text.isprintable() and any(unicodedata.category(letter) == "Cc" for letter in text)


def as_uuid(text: str) -> str | None:
    """Return a UUID of any version (text form of RFC 9562) in lower case; None if the text is not a UUID."""
    return text.lower() if _UUID.fullmatch(text) else None


def byte_length(text: str) -> int:
    """Return the number of bytes of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
