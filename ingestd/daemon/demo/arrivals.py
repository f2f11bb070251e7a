"""Watching entries arrive: woken by what the daemon tells, decided by what the service then really holds."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ingestd.client.service import ServiceClient
from ingestd.daemon.demo.child import DemoFailed

ARRIVAL_SECONDS = 30.0
_LOOK_SECONDS = 0.05
"""How long to wait at the most before the sink is read again: a delivery may be visible before the daemon has told it."""


class Arrivals:
    """What the daemon has told so far, and the service's own view of a sink."""

    def __init__(self, client: ServiceClient, workspace: str) -> None:
        self._client = client
        self._workspace = workspace
        self._told = asyncio.Event()
        self._ids: dict[str, str] = {}
        self._settled: Counter[str] = Counter()
        self._trouble = ""
        self._delivered: Counter[str] = Counter()

    def listen(self, event: Mapping[str, Any]) -> None:
        """Take note of a line of the daemon's log."""
        match event:
            case {"event": "entries_delivered", "sink": str(sink), "entries": int(entries)}:
                self._delivered[sink] += entries
            case {"event": "partition_settled", "pipeline": str(pipeline)}:
                self._settled[pipeline] += 1
            case {"level": "error" | "warning", "sentence": str(sentence)}:
                self._trouble = sentence
        self._told.set()

    def delivered(self, sink: str | None = None) -> int:
        """Entries that the daemon has written, as far as it has told: to one sink, by its address in words, or to all."""
        return self._delivered.total() if sink is None else self._delivered[sink]

    def settled(self, pipeline: str) -> int:
        """How many times something of a pipeline was delivered to its end."""
        return self._settled[pipeline]

    async def visible(self, sink: str, entries: Mapping[str, str], *, since: float) -> float:
        """Wait until the sink holds exactly ``entries``; the milliseconds from ``since`` (`time.perf_counter`) to then.

        Raises:
            DemoFailed: it does not within half a minute.
        """
        await self._until(lambda: self._holds(sink, entries), f"The entries of {sink!r} did not arrive")
        return (time.perf_counter() - since) * 1000

    async def settled_again(self, pipeline: str, before: int) -> None:
        """Wait until the daemon has told that what it read of a pipeline is settled, for the ``before`` + first time."""

        async def more() -> bool:
            return self.settled(pipeline) > before

        await self._until(more, f"The pipeline {pipeline!r} was not settled")

    async def delivered_again(self, sink: str, before: int) -> None:
        """Wait until the daemon has told of more than ``before`` entries to a sink: it may tell of the file's end first."""

        async def more() -> bool:
            return self.delivered(sink) > before

        await self._until(more, f"The daemon did not tell of entries for {sink!r}")

    async def _until(self, holds: Callable[[], Awaitable[bool]], sentence: str) -> None:
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                while True:
                    self._told.clear()
                    if await holds():
                        return
                    await self._next_word()
        except TimeoutError:
            trouble = f" The daemon says: {self._trouble}" if self._trouble else ""
            raise DemoFailed(f"{sentence} within {ARRIVAL_SECONDS:.0f} s.{trouble}") from None

    async def _next_word(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._told.wait()
        except TimeoutError:
            return

    async def _holds(self, sink: str, entries: Mapping[str, str]) -> bool:
        identity = self._ids.get(sink) or await self._find(sink)
        if not identity:
            return False
        reply = await self._client.get_sink(self._workspace, identity)
        if reply.value is None:
            raise DemoFailed(f"The service does not show the sink {sink!r}: {reply.outcome.sentence}")
        held = reply.value.entries or ()
        return len(held) == len(entries) and {entry.key: entry.value for entry in held} == entries

    async def _find(self, label: str) -> str:
        reply = await self._client.list_sinks(self._workspace)
        identity = next((sink.id for sink in reply.value or () if sink.label == label), "")
        if identity:
            self._ids[label] = identity
        return identity
