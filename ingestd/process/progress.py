"""Steps of long calls, counted by thread, so that a watchdog distinguishes a call that works from one that hangs."""

from __future__ import annotations

import threading

_steps: dict[int, int] = {}
"""By the identifier of a thread. The system reuses these, so the number of entries is that of concurrent threads."""


def note_progress(thread: int | None = None) -> None:
    """Count a step of a call, such as a page or a transaction. ``thread``: that of the call; None: the present one."""
    at = threading.get_ident() if thread is None else thread
    _steps[at] = _steps.get(at, 0) + 1


def progress_of(thread: int) -> int:
    """Return a number that changes with each step of the thread."""
    return _steps.get(thread, 0)
