"""The types of injected clocks and random generators, and times as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import MAXYEAR, UTC, datetime, tzinfo
from typing import TypeAlias

Now: TypeAlias = Callable[[], float]
"""Seconds since the epoch."""

Random: TypeAlias = Callable[[], float]
"""A random number from 0 up to, but not including, 1."""


_HOUR_24 = re.compile(r"\d{4}-?(\d\d-?\d\d|W\d\d(-?\d)?).24", re.ASCII | re.DOTALL)


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 date or date-time. Hour 24 is rejected, also in Python 3.14, where `datetime.fromisoformat` accepts it.

    Raises:
        ValueError: the text is no such date or date-time.
    """
    if _HOUR_24.match(text):
        raise ValueError(f"'{text[:64]}' has the hour 24")
    return datetime.fromisoformat(text)


def seconds_of(text: str) -> float | None:
    """Return the seconds since the epoch of a date-time with an offset, of the years 1971 to 9998; None for any other text.

    Years beyond these are excluded, because in another zone their date-times may be in a year that `moment` can't show.
    """
    try:
        at = parse_time(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None and 1970 < at.year < MAXYEAR else None


class _ShownZone:
    """The time zone in which times are shown. A daemon uses UTC; a command uses the zone of the user's account."""

    def __init__(self) -> None:
        self.of_process: tzinfo = UTC
        self._of_request: ContextVar[tzinfo | None] = ContextVar("zone of the times for one request", default=None)

    def get(self) -> tzinfo:
        return self._of_request.get() or self.of_process

    @contextmanager
    def of_request(self, zone: tzinfo) -> Iterator[None]:
        """Use another zone in the sentences for one request."""
        token = self._of_request.set(zone)
        try:
            yield
        finally:
            self._of_request.reset(token)


shown_zone = _ShownZone()


def moment(seconds: float, zone: tzinfo | None = None) -> str:
    """Return a time as text with its zone: ``2026-11-21 07:30:12 UTC``. ``zone``: `shown_zone` by default."""
    return datetime.fromtimestamp(seconds, zone or shown_zone.get()).strftime("%Y-%m-%d %H:%M:%S %Z")
