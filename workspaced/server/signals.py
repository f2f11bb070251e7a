"""Handlers of signals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from signal import Signals


@contextmanager
def signals_handled(handlers: Mapping[Signals, Callable[[], None]]) -> Iterator[None]:
    """Call the handler of each signal on the running loop, during the block."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
