"""A pipeline that counts its work: real reader, mirror and dispatcher, a scripted source and a simulated bulk service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Batch, Cursor, Partition
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.telemetry.event import Event
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import FAST_LIMITS, Rig, rig
from tests.support.scripted_source import Row, Script, ScriptedConnector
from tests.support.work_counter import CountingTransport, Work, bytes_written, counting

PIECE = 125
"""The rows of a batch and the entries of a request; small, so that a thousand rows need several batches and requests."""

_LIMITS = replace(FAST_LIMITS, in_flight_at_first=2, in_flight_at_most=2, unacknowledged_claims=2)
"""Limits with a fixed number of requests. Adaptive limits depend on time, and claims skip keys that are in flight."""


class CountedPipeline:
    """Counts into ``work``: SQLite steps and statements, rows, requests and their bytes, bytes written, acknowledgements."""

    def __init__(
        self,
        folder: Path,
        work: Work,
        *,
        script: Script,
        columns: Sequence[str] = (),
        max_items: int = PIECE,
        guard: Guard = DEFAULT_GUARD,
    ) -> None:
        self.path = folder / "state.db"
        self.work = work
        self.script = script
        self.service = BulkService(max_items=max_items)
        self.workspace = str(self.service.store.create_workspace({"label": "Bench"})["id"])
        self.sink = str(self.service.store.create_sink(self.workspace, {"label": "Rig"})["id"])
        self.address = SinkAddress(workspace=self.workspace, by="label", name="Rig")
        spec = EntrySpec(key="{k}.{column}", columns=tuple(columns)) if columns else EntrySpec(key="{k}", value="{v}")
        self._mapping = Mapping([spec])
        self._guard = guard
        self.events: list[Event] = []
        self.open()

    def open(self) -> None:
        """Open the state file and the source, as the daemon does when it starts."""
        self.mirror = SqliteMirror.open(self.path, factory=counting(self.work))
        self.mirror.intake.activate(["pipe"])
        self.reader = Reader(
            pipeline="pipe", connector=_CountingSource(self.script, self.work), mapping=self._mapping, sink=self.address,
            mirror=self.mirror.intake, emit=self.events.append, guard=self._guard,
        )  # fmt: skip

    def close(self) -> None:
        """Close the state file, as the daemon does when it stops."""
        self.mirror.close()

    def read(self) -> None:
        """Read the source once."""
        report = self.reader.read_pass()
        if report.away or report.broken or report.rejected:
            raise AssertionError(report)
        self.acknowledge()

    def acknowledge(self) -> None:
        """Acknowledge delivered partitions to the source."""
        self.work.add("acknowledged", self.reader.acknowledge_partitions())

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[Rig]:
        """Run a dispatcher until the context ends."""
        transport = CountingTransport(self.service, self.work)
        async with rig(transport=transport, deliverable=self.mirror.delivery, limits=_LIMITS) as running:
            yield running

    async def deliver(self) -> None:
        """Deliver all pending entries, and acknowledge delivered partitions to the source."""
        async with self.delivering() as running:
            left = await running.drained()
            self.acknowledge()
            if left or self.mirror.status.pending():
                raise AssertionError(f"not delivered: {left}, {self.mirror.status.pending()} pending")

    async def read_and_deliver(self) -> None:
        """Read once and deliver."""
        await asyncio.to_thread(self.read)
        await self.deliver()

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """Count the work of the block, and the bytes that the process writes during the block."""
        with self.work.counted():
            before = bytes_written()
            yield
            self.work.add("bytes written", bytes_written() - before)

    def held(self) -> dict[str, str]:
        """Return the entries in the service: key to value."""
        return {key: str(entry["value"]) for key, entry in self.service.store.entries[self.sink].items()}


class _CountingSource(ScriptedConnector):
    def __init__(self, script: Script, work: Work) -> None:
        super().__init__(script)
        self._work = work

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        for batch in super().read(partition, cursor):
            self._work.add("rows read", batch.records.height)
            yield batch


def rows(count: int, *, a: str = "1", b: str = "2") -> list[Row]:
    """Return ``count`` records with a key ``k``, a value ``v`` and two columns ``a`` and ``b``."""
    return [{"k": f"part-{number:06d}", "v": a, "a": a, "b": b} for number in range(count)]
