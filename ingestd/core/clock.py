"""The types of injected clocks and random generators, and the format of times for people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Now: TypeAlias = Callable[[], float]
"""Seconds since the epoch."""

Random: TypeAlias = Callable[[], float]
"""A random number from 0 up to, but not including, 1."""


def moment(seconds: float) -> str:
    """Return a time for people: ``2026-11-21 07:30:12 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
