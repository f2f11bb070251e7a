"""Notifications to systemd: watchdog pings, readiness, and the status line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ingestd.process.change_signal import ChangeSignal
from ingestd.process.notify import Notifier

STATUS_DISTANCE_SECONDS = 1.0
"""The minimum interval between two status lines. The counts in the line change with every batch."""


class Heartbeat:
    """Pings the watchdog from the event loop and keeps the status line current. If the loop hangs, it sends no pings."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._changes = ChangeSignal()
        self._sent = ""

    def changed(self) -> None:
        """Update the status line soon. Thread-safe."""
        self._changes.notify()

    def ready(self, sentence: str) -> None:
        """Report that start-up is complete."""
        self._notifier.ready(sentence)

    def reloading(self, sentence: str) -> None:
        """Report that a reload has begun."""
        self._notifier.reloading(sentence)

    def reloaded(self, sentence: str) -> None:
        """Report that a reload has ended, and update the status line soon."""
        self._notifier.ready(sentence)
        self._sent = sentence
        self._changes.notify()

    def alive(self) -> None:
        """Ping the watchdog once. Used before `run` can start."""
        if self._notifier.watchdog_seconds is not None:
            self._notifier.alive()

    def stopping(self, sentence: str) -> None:
        """Report that shutdown has begun."""
        self._notifier.stopping(sentence)

    async def run(self, numbers: Callable[[], str]) -> None:
        """Send heartbeats until cancelled. ``numbers`` returns the status line; it runs in a thread, because it may block."""
        if not self._notifier.address:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            if self._notifier.watchdog_seconds is not None:
                group.create_task(self._ping(self._notifier.watchdog_seconds))
            group.create_task(self._send_status(numbers))

    async def _ping(self, watchdog_seconds: float) -> None:
        # A third of the watchdog time: one late ping causes no restart. sd_watchdog_enabled(3) recommends half of the time.
        while True:
            self._notifier.alive()
            await asyncio.sleep(watchdog_seconds / 3)

    async def _send_status(self, numbers: Callable[[], str]) -> None:
        known = self._changes.generation
        while True:
            await self._changes.wait_past(known)
            known = self._changes.generation
            sentence = await asyncio.to_thread(numbers)
            if sentence != self._sent:
                self._notifier.status(sentence)
                self._sent = sentence
            await asyncio.sleep(STATUS_DISTANCE_SECONDS)
