"""The types of injected clocks and random generators, and times as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
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


def moment(seconds: float) -> str:
    """Return a time for people: ``2026-11-21 07:30:12 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
