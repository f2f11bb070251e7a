"""The form of an API key (contract A1): ``edw_<key id: 8 characters>_<43 random characters><checksum: 6 characters>``.

The checksum rejects a mistyped key without a query of the database. 43 random characters of base 62 have 256 bits of entropy,
so a plain SHA-256 of the key is safe to store.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"edw_([0-9A-Za-z]{8})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})", re.ASCII)


def new_key_id(choose: Callable[[str], str]) -> str:
    """Return a new key id. ``choose`` returns a random character of a text, like `secrets.choice`."""
    return "".join(choose(_LETTERS) for _ in range(8))


def new_key(key_id: str, choose: Callable[[str], str]) -> str:
    """Return a new key with this id."""
    body = f"edw_{key_id}_{''.join(choose(_LETTERS) for _ in range(43))}"
    return body + _checksum(body)


def key_id_of(key: str) -> str | None:
    """Return the id in a key; None if the text does not have the form of a key, or its checksum is wrong."""
    match = _FORM.fullmatch(key)
    return match[1] if match and _checksum(key[:-6]) == match[3] else None


def digest(key: str) -> bytes:
    """Return the digest of a key. Only this digest is stored."""
    return hashlib.sha256(key.encode()).digest()


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    letters = ""
    for _ in range(6):
        number, index = divmod(number, len(_LETTERS))
        letters = _LETTERS[index] + letters
    return letters
