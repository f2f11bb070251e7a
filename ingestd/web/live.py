"""Server-sent events with the changing part of the overview; an event follows each change."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from ingestd.process.change_signal import ChangeSignal

MAX_CLIENTS = 8
_DISTANCE_SECONDS = 2.0
"""The minimum interval between two readings of the state, for all clients together."""
_REFRESH_SECONDS = 15.0
"""After this time without an event, the rows are read again, because they show ages. Writing also detects lost clients."""
_LIFE_SECONDS = 1_800.0
"""A stream ends after this time. The browser then opens a new stream."""


class LiveRows:
    """Streams of the overview. ``changes``: the daemon's events.

    ``read`` renders the overview for a filter; it is called once for all clients with this filter.
    """

    def __init__(self, changes: ChangeSignal, read: Callable[[str], Awaitable[str]]) -> None:
        self._changes = changes
        self._read = read
        self._clients = 0
        self._rows: dict[str, str] = {}
        self._read_at = 0.0
        self._known = -1
        self._turn = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of clients is reached."""
        return self._clients >= MAX_CLIENTS

    async def stream(self, state: str) -> AsyncGenerator[bytes, None]:
        """Yield events until the client leaves. ``state``: only pipelines in this state, or empty for all pipelines."""
        self._clients += 1
        ends = time.monotonic() + _LIFE_SECONDS
        sent = ""
        try:
            yield b"retry: 5000\n\n"
            while time.monotonic() < ends:
                known = self._changes.generation
                rows = await self._current(state)
                digest = hashlib.sha256(rows.encode()).hexdigest()
                if digest != sent:
                    sent = digest
                    yield f"event: rows\ndata: {json.dumps(rows)}\n\n".encode()
                else:
                    yield b": no change\n\n"
                await self._changes.wait_past(known, seconds=_REFRESH_SECONDS)
        finally:
            self._clients -= 1

    async def _current(self, state: str) -> str:
        async with self._turn:
            wait = self._read_at + _DISTANCE_SECONDS - time.monotonic()
            is_fresh = self._known == self._changes.generation and wait > -_REFRESH_SECONDS
            if not is_fresh:
                if wait > 0:
                    await asyncio.sleep(wait)
                self._known = self._changes.generation
                self._rows = {}
            if state not in self._rows:
                self._rows[state] = await self._read(state)
                self._read_at = time.monotonic()
            return self._rows[state]
