"""The clock of the service: the present instant, and waiting until an instant or an event."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock(Protocol):
    """The interface of clocks; tests use their own."""

    def now(self) -> int:
        """Return milliseconds since 1970."""

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """Wait until the event is set, at most until an instant in milliseconds since 1970."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return now_ms()

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """Wait until the event is set, at most until an instant in milliseconds since 1970."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(until - now_ms(), 0) / 1_000):
                await event.wait()
