"""SIGTERM and SIGINT, for whoever owns the process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def handled(stop: Callable[[str], None]) -> Iterator[None]:
    """``stop`` is called with the signal's name on the running loop, each time one comes within the block."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
