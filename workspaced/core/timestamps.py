"""Timestamps: the service stores whole numbers, and bodies have RFC 3339 texts (contract G3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - isoformat writes no offset for it
_FIRST_SECOND = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LAST_SECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_RFC_3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


@lru_cache(maxsize=8192)
def stamp(milliseconds: int) -> str:
    """Return ``YYYY-MM-DDTHH:MM:SS.mmmZ`` for milliseconds since 1970. Cached, because the rows of a batch have equal times."""
    # strftime would write years before 1000 with fewer than four digits.
    return f"{(_NAIVE_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec='milliseconds')}Z"


def microseconds(text: str) -> int:
    """Return the microseconds since 1970 of an RFC 3339 date-time with an offset, rounded down. `stamp` accepts the result.

    Raises:
        ValueError: the text does not have this form, or its year in UTC is not from 1 to 9999.
    """
    match = _RFC_3339.fullmatch(text)
    if not match:
        raise ValueError(f"'{text[:64]}' is not an RFC 3339 date-time with an offset")
    date, time, fraction, offset = match.groups()
    moment = datetime.fromisoformat(f"{date}T{time}{'+00:00' if offset in 'Zz' else offset}")
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    if not _FIRST_SECOND <= whole <= _LAST_SECOND:
        raise ValueError(f"'{text}' is not in the years 1 to 9999 in UTC")
    return whole * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])
