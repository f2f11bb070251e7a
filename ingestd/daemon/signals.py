"""SIGTERM and SIGINT: the first asks the daemon to drain, the second ends it at once. SIGHUP asks it to reload."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ASKS_TO_STOP = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(ask: Callable[[str], None]) -> Iterator[None]:
    """While the context is open, the first signal calls ``ask`` with its name on the running event loop.

    The second ends the process there and then with 128 + its number, as a shell would report it: whoever sends twice
    does not want to wait, and the state file bears it. It works while the event loop hangs, too. To be opened on the
    main thread, where Python runs signal handlers.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        # Not loop.add_signal_handler: its handlers wait for the loop, and the second signal must not.
        loop.call_soon_threadsafe(ask, signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in _ASKS_TO_STOP}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reload_signal(reload: Callable[[], None]) -> Iterator[None]:
    """While the context is open, SIGHUP calls ``reload`` on the running event loop and ends nothing."""
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: loop.call_soon_threadsafe(reload))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
