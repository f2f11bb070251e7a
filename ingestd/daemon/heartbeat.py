"""What the service manager hears of us: that the event loop turns, and one sentence of numbers when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ingestd.process.change_signal import ChangeSignal
from ingestd.process.notify import Notifier
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import ManagerUnreachable

STATUS_DISTANCE_SECONDS = 1.0
"""The numbers change with every batch; nobody reads them more often than this."""


class Heartbeat:
    """Feeds the watchdog from the event loop, so that a loop that hangs is noticed, and keeps the status line true.

    `changed` says that the sentence may differ now; it may be called from any thread.
    """

    def __init__(self, notifier: Notifier, *, emit: Emit) -> None:
        self._notifier = notifier
        self._emit = emit
        self._changes = ChangeSignal()
        self._reachable = True

    def changed(self) -> None:
        """The numbers may have changed."""
        self._changes.notify()

    def ready(self, sentence: str) -> None:
        """Tell that start-up is done."""
        self._send(lambda: self._notifier.ready(sentence))

    def alive(self) -> None:
        """Feed the watchdog once, for a daemon that cannot `run` yet."""
        if self._notifier.watchdog_seconds is not None:
            self._send(self._notifier.alive)

    def stopping(self, sentence: str) -> None:
        """Tell that shutdown has begun."""
        self._send(lambda: self._notifier.stopping(sentence))

    async def run(self, numbers: Callable[[], str]) -> None:
        """Heartbeat until cancelled. ``numbers`` makes the sentence; it may block and runs in a thread."""
        if not self._notifier.address:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            if self._notifier.watchdog_seconds is not None:
                group.create_task(self._feed(self._notifier.watchdog_seconds))
            group.create_task(self._tell(numbers))

    async def _feed(self, watchdog_seconds: float) -> None:
        # A third, so that one late beat is not yet a restart (sd_watchdog_enabled(3) asks for at most half).
        while True:
            self._send(self._notifier.alive)
            await asyncio.sleep(watchdog_seconds / 3)

    async def _tell(self, numbers: Callable[[], str]) -> None:
        told = ""
        known = self._changes.generation
        while True:
            await self._changes.wait_past(known)
            known = self._changes.generation
            sentence = await asyncio.to_thread(numbers)
            if sentence != told:
                self._send(lambda: self._notifier.status(sentence))  # noqa: B023 - called before the next turn
                told = sentence
            await asyncio.sleep(STATUS_DISTANCE_SECONDS)

    def _send(self, send: Callable[[], None]) -> None:
        try:
            send()
        except OSError as error:
            if self._reachable:
                self._emit(ManagerUnreachable(reason=f"The notify socket {self._notifier.address} failed: {error}"))
            self._reachable = False
        else:
            self._reachable = True
