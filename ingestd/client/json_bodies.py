"""JSON bodies in which a service escapes half of a surrogate pair, as programs do that cut texts of UTF-16."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def lenient(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return the decoder, which reads half of a surrogate pair as U+FFFD instead of failing at the whole body.

    Otherwise the label of another sink, or the message of a rejection, would make every response with it unreadable.
    """

    def decode_leniently(body: bytes) -> T:
        try:
            return decode(body)
        except msgspec.DecodeError:
            repaired = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)
            if repaired == body:
                raise
            return decode(repaired)

    return decode_leniently


decode_json: Callable[[bytes], Any] = lenient(msgspec.json.decode)


def storable(text: str) -> str:
    """Return the text with each half of a surrogate pair as its escape: it has no form in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
