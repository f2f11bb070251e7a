"""Steps of long calls, counted by thread, so that a watchdog can distinguish a working call from a call that hangs."""

from __future__ import annotations

import threading

_steps: dict[int, int] = {}
"""The counts, by thread identifier. The system reuses identifiers, so there are never more counts than concurrent threads."""


def note_progress(thread: int | None = None) -> None:
    """Count a step of a call, such as a page or a transaction. ``thread``: the call's thread; None: the current thread."""
    at = threading.get_ident() if thread is None else thread
    _steps[at] = _steps.get(at, 0) + 1


def progress_of(thread: int) -> int:
    """Return a number that changes with each step of the thread."""
    return _steps.get(thread, 0)
