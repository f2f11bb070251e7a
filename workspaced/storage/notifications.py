"""Who in this process wants to be woken when something is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection


class NotificationListeners:
    """Listeners by channel, each with the loop it lives on."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str, asyncio.AbstractEventLoop, Callable[[], None]]] = []

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """As `workspaced.storage.port.Store.listen`."""
        self._listeners.append((channel, asyncio.get_running_loop(), wake))

    def announce(self, channels: Collection[str] | None) -> None:
        """Wake who listens to any of the channels, or (None) everybody. From any thread."""
        for channel, loop, wake in self._listeners:
            if channels is not None and channel not in channels:
                continue
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop was closed: there is nobody left to wake
                continue
