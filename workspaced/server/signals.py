"""Handlers for SIGTERM and SIGINT."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def signals_handled(stop: Callable[[str], None]) -> Iterator[None]:
    """Call ``stop`` on the running loop with the signal's name, for each signal during the block."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
