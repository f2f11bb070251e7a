"""The announcement of bulk updates: the limits of a service for one request (service contract M3, M8, M9)."""

from __future__ import annotations

import re

import msgspec

HEADER = "X-Bulk-Mass"

_FORM = re.compile(r"\s*max-items=(?P<items>[1-9]\d{0,8})\s*,\s*max-bytes=(?P<bytes>[1-9]\d{0,11})\s*")


class BulkLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many items and body bytes one bulk request may have."""

    max_items: int
    max_bytes: int

    def __str__(self) -> str:
        return f"max-items={self.max_items}, max-bytes={self.max_bytes}"


def parse_bulk_limits(text: str | None) -> BulkLimits | None:
    """Return the limits that a service announces. None if the header is missing or malformed; then no bulk update is sent."""
    match = _FORM.fullmatch(text or "")
    return BulkLimits(max_items=int(match["items"]), max_bytes=int(match["bytes"])) if match else None
