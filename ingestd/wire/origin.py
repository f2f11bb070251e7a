"""The announcement of origins: a service that keeps where values come from (service contract M12)."""

from __future__ import annotations

import re

import msgspec

HEADER = "X-Entry-Origin"
ROW_BITS = 32
"""A row is a number of this many bits."""

_FORM = re.compile(r"\s*max-origins=(?P<origins>[1-9]\d{0,5})\s*,\s*max-text=(?P<text>[1-9]\d{0,5})\s*")


class OriginLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many origins one bulk request may have, and how many characters each of their texts."""

    max_origins: int
    max_text: int

    def __str__(self) -> str:
        return f"max-origins={self.max_origins}, max-text={self.max_text}"


def parse_origin_limits(text: str | None) -> OriginLimits | None:
    """Return the limits that a service announces; None if there are none or they can't be parsed: no origin is sent."""
    match = _FORM.fullmatch(text or "")
    return OriginLimits(max_origins=int(match["origins"]), max_text=int(match["text"])) if match else None
