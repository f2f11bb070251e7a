"""The shutdown of a process: its cause, its progress, and its deadline."""

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
"""The time limit of the drain, after which the process exits. The documentation for users promises ten seconds."""

_FLUSH_SECONDS = 1.0


class Shutdown:
    """A request to stop and its deadline. ``step`` names the current step for the event of an overrun.

    ``overrun``: the exit code after the deadline. The code may be 0: committed work remains, and all other work is repeated
    after the next start. ``seconds``: the time until the deadline; None: no deadline, because the process belongs to another
    program.
    """

    def __init__(self, *, emit: Emit, overrun: ExitCode, seconds: float | None = DRAIN_SECONDS) -> None:
        self.asked = asyncio.Event()
        self.signal = ""
        self.step = "starting"
        self._emit = emit
        self._overrun = overrun
        self._seconds = seconds
        self._began = 0.0
        self._deadline: threading.Timer | None = None

    def ask(self, signal: str) -> None:
        """Request the stop; ``signal`` is the signal's name or another cause. Later calls have no effect."""
        if self.signal:
            return
        self.signal = signal
        self._began = time.monotonic()
        if self._seconds is not None:
            # A timer thread ends the process even if the event loop or a source hangs.
            self._deadline = threading.Timer(self._seconds, self._exit_now, [self._seconds])
            self._deadline.daemon = True
            self._deadline.start()
        self.asked.set()

    def done(self) -> float:
        """Cancel the deadline after a complete shutdown. Return the duration of the shutdown in seconds."""
        if self._deadline is not None:
            self._deadline.cancel()
        return time.monotonic() - self._began

    def _exit_now(self, seconds: float) -> None:
        self._emit(DrainOverran(seconds=seconds, step=self.step))
        flush_logs(_FLUSH_SECONDS)
        os._exit(self._overrun)
