"""What text may be: the rules for strings from outside (contract G1, G7, G8)."""

from __future__ import annotations

import re
import unicodedata

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


def normalised(text: str) -> str:
    """``text`` in Unicode's form NFC, so that equal letters are equal keys."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def has_controls(text: str) -> bool:
    """Whether a control character (Unicode's category Cc) is in it."""
    return not text.isprintable() and any(unicodedata.category(letter) == "Cc" for letter in text)


def as_uuid(text: str) -> str | None:
    """The lower-case form of a UUID in RFC 9562's text form, of any version; None where it is none."""
    return text.lower() if _UUID.fullmatch(text) else None


def byte_length(text: str) -> int:
    """Bytes in UTF-8, without encoding what is plain ASCII."""
    return len(text) if text.isascii() else len(text.encode())
