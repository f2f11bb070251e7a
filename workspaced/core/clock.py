"""The clock of the service: the present instant, and waiting until an instant or an event."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

_TOLERATED_MS = 1_000


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock:
    """The clock of the machine. Tests override its methods."""

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return now_ms()

    def steady(self) -> int:
        """Return milliseconds that only pass, whatever the clock is set to."""
        return time.monotonic_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """Wait until the event is set, at most until an instant in milliseconds since 1970."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(until - now_ms(), 0) / 1_000):
                await event.wait()


class SetBack:
    """Notices that a clock was put back. What is due at a stored instant would then wait for longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = self._difference()

    def noticed(self) -> bool:
        """Return whether the clock was put back since `accept`."""
        self._ahead = max(self._ahead, self._difference())
        return self._difference() < self._ahead - _TOLERATED_MS

    def accept(self) -> None:
        """Accept the clock as it is now."""
        self._ahead = self._difference()

    def _difference(self) -> int:
        return self._clock.now() - self._clock.steady()
