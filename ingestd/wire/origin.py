"""The origins of values in requests: the announcement of a service that stores origins, and encoded rows (contract M12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from operator import sub

import msgspec

HEADER = "X-Entry-Origin"
ROW_BITS = 32
"""The number of bits of a row number."""
MAX_LINK_CHARS = 2_048
"""The maximum number of characters of a link to a page about an origin."""

_FORM = re.compile(r"\s*max-origins=(?P<origins>[1-9]\d{0,5})\s*,\s*max-text=(?P<text>[1-9]\d{0,5})\s*")


class OriginLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum number of origins in a bulk request, and the maximum number of characters of each text of an origin."""

    max_origins: int
    max_text: int

    def __str__(self) -> str:
        return f"max-origins={self.max_origins}, max-text={self.max_text}"


def parse_origin_limits(text: str | None) -> OriginLimits | None:
    """Return the limits that a service announces. None if the header is missing or malformed; then no origins are sent."""
    match = _FORM.fullmatch(text or "")
    return OriginLimits(max_origins=int(match["origins"]), max_text=int(match["text"])) if match else None


def encode_row_steps(rows: Sequence[int]) -> bytes:
    """Return the JSON of the rows of consecutive entries: the first row, then the differences. Row 0 is unknown.

    The result is empty if no row is known, or if a row has more than `ROW_BITS` bits.
    """
    if not rows or min(rows) < 0 or not 0 < max(rows) < 1 << ROW_BITS:
        return b""
    return msgspec.json.encode([rows[0], *map(sub, rows[1:], rows)])


def decode_row_steps(steps: bytes, entries: int) -> list[int]:
    """Return the rows of ``entries`` entries from the result of `encode_row_steps`."""
    return list(accumulate(msgspec.json.decode(steps, type=list[int]))) if steps else [0] * entries
