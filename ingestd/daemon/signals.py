"""Signal handlers: the first SIGTERM or SIGINT drains the daemon, the second ends it at once, and SIGHUP causes a reload."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ingestd.process.hangup import EarlyHangup

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(ask: Callable[[str], None]) -> Iterator[None]:
    """While the context is open, the first signal calls ``ask`` with its name on the running event loop.

    The second signal ends the process at once with exit status 128 + signal number, even if the event loop hangs. This is safe
    for the state file. Use this context on the main thread, where Python runs signal handlers.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        # Handlers of loop.add_signal_handler wait for the loop, so they could not end a hanging loop.
        loop.call_soon_threadsafe(ask, signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reload_signal(reload: Callable[[], None]) -> Iterator[None]:
    """While the context is open, SIGHUP calls ``reload`` on the running event loop instead of ending the process.

    If `ingestd.process.hangup` has noted a SIGHUP, call ``reload`` at once: the configuration may be older than the signal.
    """
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: loop.call_soon_threadsafe(reload))
    if isinstance(before, EarlyHangup) and before.noted:
        reload()
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
