"""Time for what waits: an instant, or to be woken before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock(Protocol):
    """Time, so that a test can have its own."""

    def now(self) -> int:
        """Milliseconds since 1970."""

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """Until the event is set or that instant has come."""


class SystemClock:
    """The real one."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def now(self) -> int:
        """As the protocol says."""
        return self._now()

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """As the protocol says."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(until - self._now(), 0) / 1_000):
                await event.wait()
