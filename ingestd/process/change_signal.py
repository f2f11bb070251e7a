"""A signal that loses no change: a waiter states the last change that it knows, and any later change ends its wait.

An `asyncio.Event` that is cleared or replaced loses a change between the evaluation of a condition and the wait, because other
tasks run at every `await`. With this signal, a waiter first reads `generation`, and then evaluates the condition, as
`ChangeSignal.wait_until` does. A change after the first step makes `wait_past` return at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class ChangeSignal:
    """Counts changes and wakes every task that waits for a change. All methods are thread-safe.

    Each waiter runs on its own event loop; `notify` may be called from any thread and never blocks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def generation(self) -> int:
        """The number of changes so far."""
        return self._generation

    def notify(self) -> None:
        """Record a change and wake every waiter."""
        with self._lock:
            self._generation += 1
            waiters, self._waiters = self._waiters, set()
        here = asyncio._get_running_loop()  # noqa: SLF001 - documented for event loop implementers; None in other threads
        for waiter in waiters:
            loop = waiter.get_loop()
            if loop is here:
                _wake(waiter)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiter)

    async def wait_until(self, found: Callable[[], T | None]) -> T:
        """Call ``found`` now and after each change, until its result is true; return this result."""
        while True:
            known = self._generation
            if value := found():
                return value
            await self.wait_past(known)

    async def wait_past(self, generation: int, *, seconds: float | None = None) -> bool:
        """Wait until there was a change after ``generation``; return False if ``seconds`` pass first.

        Return at once if there was such a change already. ``seconds`` None: no limit.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._generation != generation:
                return True
            self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return self._generation != generation
        finally:
            with self._lock:
                self._waiters.discard(waiter)
        return True


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
