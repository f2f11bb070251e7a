"""Callbacks of this process that are called after commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection


class NotificationListeners:
    """The callbacks of each channel, with the event loop on which each runs."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str, asyncio.AbstractEventLoop, Callable[[], None]]] = []

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """See `workspaced.storage.port.Store.listen`."""
        self._listeners.append((channel, asyncio.get_running_loop(), wake))

    def announce(self, channels: Collection[str] | None) -> None:
        """Call the callbacks of the channels, or (None) all callbacks. May be called from any thread."""
        for channel, loop, wake in self._listeners:
            if channels is not None and channel not in channels:
                continue
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop was closed: its callbacks are gone
                continue
