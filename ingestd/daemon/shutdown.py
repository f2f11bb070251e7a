"""The way down: who asked for it, how far it is, and that it ends in time whatever hangs."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.logs import flush_logs
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import DrainOverran

DRAIN_SECONDS = 8.0
"""From the request to stop to the moment at which what still runs is cut off; the promise outside is ten."""

_FLUSH_SECONDS = 1.0


class Shutdown:
    """A request to stop and its deadline. ``step`` says what is being waited for, for the event that tells of an overrun.

    ``overrun``: the exit code of a process that was cut off. Never that of an error: what is committed stays, the rest is
    read and sent again after the next start.
    """

    def __init__(self, *, emit: Emit, overrun: ExitCode, seconds: float = DRAIN_SECONDS) -> None:
        self.asked = asyncio.Event()
        self.signal = ""
        self.step = "starting"
        self._emit = emit
        self._overrun = overrun
        self._seconds = seconds
        self._began = 0.0
        self._deadline: threading.Timer | None = None

    def ask(self, signal: str) -> None:
        """Begin to stop; ``signal`` is the name of the one that asked, or what else did. Only the first counts."""
        if self._deadline is not None:
            return
        self.signal = signal
        self._began = time.monotonic()
        # In a thread of its own: neither a hanging event loop nor a source that does not answer holds up the exit.
        self._deadline = threading.Timer(self._seconds, self._cut_off)
        self._deadline.daemon = True
        self._deadline.start()
        self.asked.set()

    def done(self) -> float:
        """Everything has been put down; how many seconds that took."""
        if self._deadline is not None:
            self._deadline.cancel()
        return time.monotonic() - self._began

    def _cut_off(self) -> None:
        self._emit(DrainOverran(seconds=self._seconds, step=self.step))
        flush_logs(_FLUSH_SECONDS)
        os._exit(self._overrun)
