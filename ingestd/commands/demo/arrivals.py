"""Waits for entries in the service: each event of the daemon triggers a read of the sink and a comparison of its content."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ingestd.client.service import ServiceClient
from ingestd.commands.demo.child import DemoFailed

ARRIVAL_SECONDS = 30.0
_POLL_SECONDS = 0.05
"""Maximum interval between reads of the sink: entries may be visible before the daemon emits an event."""


class Arrivals:
    """Events of the daemon, and the content of sinks in the service."""

    def __init__(self, client: ServiceClient, workspace: str) -> None:
        self._client = client
        self._workspace = workspace
        self._reported = asyncio.Event()
        self._ids: dict[str, str] = {}
        self._acknowledged: Counter[str] = Counter()
        self._warning = ""
        self._delivered: Counter[str] = Counter()

    def listen(self, event: Mapping[str, Any]) -> None:
        """Record an event of the daemon's log."""
        match event:
            case {"event": "entries_delivered", "sink": str(sink), "entries": int(entries)}:
                self._delivered[sink] += entries
            case {"event": "partition_acknowledged", "pipeline": str(pipeline)}:
                self._acknowledged[pipeline] += 1
            case {"level": "error" | "warning", "sentence": str(sentence)}:
                self._warning = sentence
        self._reported.set()

    def delivered(self, sink: str | None = None) -> int:
        """Return the number of delivered entries of one sink (``label in workspace``) or of all sinks."""
        return self._delivered.total() if sink is None else self._delivered[sink]

    def acknowledged(self, pipeline: str) -> int:
        """Return the number of acknowledged partitions of a pipeline."""
        return self._acknowledged[pipeline]

    async def wait_visible(self, sink: str, entries: Mapping[str, str], *, since: float) -> float:
        """Wait until the sink contains exactly ``entries``. Return the milliseconds since ``since`` (`time.perf_counter`).

        Raises:
            DemoFailed: the sink does not contain the entries within ``ARRIVAL_SECONDS``.
        """
        await self._until(lambda: self._contains(sink, entries), f"The entries of {sink!r} did not arrive")
        return (time.perf_counter() - since) * 1000

    async def wait_acknowledged(self, pipeline: str, before: int) -> None:
        """Wait until more than ``before`` partitions of a pipeline are acknowledged."""

        async def more() -> bool:
            return self.acknowledged(pipeline) > before

        await self._until(more, f"The file of the pipeline {pipeline!r} was not completely delivered")

    async def wait_delivered(self, sink: str, before: int) -> None:
        """Wait until more than ``before`` entries of a sink are delivered. This event may follow the file's acknowledgement."""

        async def more() -> bool:
            return self.delivered(sink) > before

        await self._until(more, f"The daemon reported no entries for {sink!r}")

    async def _until(self, holds: Callable[[], Awaitable[bool]], sentence: str) -> None:
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                while True:
                    self._reported.clear()
                    if await holds():
                        return
                    await self._next_event()
        except TimeoutError:
            warning = f" The daemon reports: {self._warning}" if self._warning else ""
            raise DemoFailed(f"{sentence} within {ARRIVAL_SECONDS:.0f} s.{warning}") from None

    async def _next_event(self) -> None:
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                await self._reported.wait()
        except TimeoutError:
            return

    async def _contains(self, sink: str, entries: Mapping[str, str]) -> bool:
        sink_id = self._ids.get(sink) or await self._find(sink)
        if not sink_id:
            return False
        response = await self._client.get_sink(self._workspace, sink_id)
        if response.value is None:
            raise DemoFailed(f"The service does not show the sink {sink!r}: {response.outcome.sentence}")
        held = response.value.entries or ()
        return len(held) == len(entries) and {entry.key: entry.value for entry in held} == entries

    async def _find(self, label: str) -> str:
        response = await self._client.list_sinks(self._workspace)
        sink_id = next((sink.id for sink in response.value or () if sink.label == label), "")
        if sink_id:
            self._ids[label] = sink_id
        return sink_id
