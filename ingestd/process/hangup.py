"""The handling of SIGHUP before a program has set its own handler."""

from __future__ import annotations

import signal
from types import FrameType


class EarlyHangup:
    """A handler that notes a SIGHUP, which would otherwise end the process."""

    def __init__(self) -> None:
        self.noted = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Note the signal."""
        self.noted = True


def defer_hangups() -> None:
    """Note each SIGHUP from now on, until the program sets its own handler. Call this on the main thread."""
    signal.signal(signal.SIGHUP, EarlyHangup())
