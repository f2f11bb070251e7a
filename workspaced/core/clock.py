"""The clock of the service: the present time, and waiting until a time or an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

_TOLERATED_MS = 1_000
_LATEST_MS = 1_000


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock:
    """The clock of the machine. Tests override its methods."""

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return now_ms()

    def steady(self) -> int:
        """Return monotonic milliseconds, which do not change when the clock is set."""
        return time.monotonic_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, until: int) -> None:
        """Wait until the event is set, at most until the time ``until`` (milliseconds since 1970)."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(until - self.now(), 0) / 1_000):
                await event.wait()


class SharedClock(Clock):
    """A clock that several hosts share, such as the clock of a database.

    Its time is stored as a difference to this machine's steady clock. So a wrong clock of one host does not affect the times
    that other hosts read. Before the first measurement, `now` returns the time of the machine's clock.
    """

    def __init__(self) -> None:
        self._ahead: int | None = None

    def now(self) -> int:
        """Return milliseconds since 1970."""
        return super().now() if self._ahead is None else self.steady() + self._ahead

    def measure(self, ask: Callable[[], int]) -> None:
        """Measure the shared clock. ``ask`` returns its time in milliseconds since 1970.

        The result of a slow call is used only if there is no other result yet.
        """
        before = self.steady()
        shared = ask()
        after = self.steady()
        if self._ahead is None or after - before <= _LATEST_MS:
            self._ahead = shared - (before + after) // 2


class SetBack:
    """Detects that a clock was set back. Work that is due at a stored time would then start too late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = self._difference()

    def noticed(self) -> bool:
        """Return whether the clock was set back since the last `accept`."""
        self._ahead = max(self._ahead, self._difference())
        return self._difference() < self._ahead - _TOLERATED_MS

    def accept(self) -> None:
        """Use the present time of the clock as the reference of `noticed`."""
        self._ahead = self._difference()

    def _difference(self) -> int:
        return self._clock.now() - self._clock.steady()
