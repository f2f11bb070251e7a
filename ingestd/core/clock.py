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
    """Return a date or time of ISO 8601. Hour 24 is no time: `datetime.fromisoformat` accepts it from Python 3.14 on.

    Raises:
        ValueError: the text does not have this form.
    """
    if _HOUR_24.match(text):
        raise ValueError(f"'{text[:64]}' has the hour 24")
    return datetime.fromisoformat(text)


def seconds_of(text: str) -> float | None:
    """Return the seconds since the epoch of a date-time with an offset, of the years 1971 to 9998; None for any other text.

    In another zone, a date-time of the first or the last year may be one of a year that `moment` can't show.
    """
    try:
        at = parse_time(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None and 1970 < at.year < MAXYEAR else None


class _ShownZone:
    """The zone of times for people. A daemon has UTC; a command sets the zone of its account."""

    def __init__(self) -> None:
        self.of_process: tzinfo = UTC
        self._of_request: ContextVar[tzinfo | None] = ContextVar("zone of the times for one request", default=None)

    def get(self) -> tzinfo:
        return self._of_request.get() or self.of_process

    @contextmanager
    def of_request(self, zone: tzinfo) -> Iterator[None]:
        """Use another zone for the sentences that one request makes."""
        token = self._of_request.set(zone)
        try:
            yield
        finally:
            self._of_request.reset(token)


shown_zone = _ShownZone()


def moment(seconds: float, zone: tzinfo | None = None) -> str:
    """Return a time for people with its zone: ``2026-11-21 07:30:12 UTC``. ``zone``: by default the zone of the command."""
    return datetime.fromtimestamp(seconds, zone or shown_zone.get()).strftime("%Y-%m-%d %H:%M:%S %Z")
