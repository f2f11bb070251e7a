"""The two mirrors of the simulation: the real one in a file, and the one in memory with threads as those of the real one."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from ingestd.mirror.drift import DriftStatus, RemoveUnexplained
from ingestd.mirror.port import Claim, DeliveryAttempt, LaneBlocker, LaneState, RejectedEntry
from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.threads import in_thread
from tests.simulation.loop import run_inline
from tests.support.memory_mirror import MemoryMirror

T = TypeVar("T")


class NotDurable(sqlite3.Connection):
    """A connection that does not wait for the disk, because no simulation includes a power failure."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA synchronous = FULL":
            sql = "PRAGMA synchronous = OFF"
        return super().execute(sql, *parameters)


@cache
def _empty_state_file() -> bytes:
    """Return a state file as it is after its migrations, which take longer than a whole simulation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        SqliteMirror.open(path).close()
        return path.read_bytes()


class StateFolder:
    """A folder for one state file and its socket, in memory if the system supports it."""

    def __init__(self) -> None:
        in_memory = Path("/dev/shm")
        self._folder = Path(tempfile.mkdtemp(dir=in_memory if in_memory.is_dir() else None))
        self.path = self._folder / "state.db"

    def fill(self) -> None:
        """Write an empty state file."""
        self.path.write_bytes(_empty_state_file())

    def open(self, now: Callable[[], float]) -> SqliteMirror:
        return SqliteMirror.open(self.path, now=now, factory=NotDurable)

    def remove(self) -> None:
        shutil.rmtree(self._folder)


class ThreadedMirror:
    """Executes calls to a mirror in memory as the one in a file does: in threads, shielded, each atomically."""

    def __init__(self, inner: MemoryMirror) -> None:
        self._inner = inner
        self._reads = ThreadPoolExecutor(1)
        self._writes = ThreadPoolExecutor(1)

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await in_thread(pool, lambda: run_inline(work()))

    async def lanes(self) -> list[LaneState]:
        return await self._in(self._reads, self._inner.lanes)

    async def lane(self, sink: int) -> LaneState | None:
        return await self._in(self._reads, lambda: self._inner.lane(sink))

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        return await self._in(self._reads, lambda: self._inner.claim(sink, max_items=max_items, max_bytes=max_bytes))

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> None:
        await self._in(
            self._writes,
            lambda: self._inner.remember_sink(sink, workspace_id=workspace_id, sink_id=sink_id, adopted=adopted),
        )

    async def forget_sink(self, sink: int, *, lost: str = "") -> bool:
        return await self._in(self._writes, lambda: self._inner.forget_sink(sink, lost=lost))

    async def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        return await self._in(self._writes, lambda: self._inner.adopt(sink, entries))

    async def acknowledge(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        await self._in(self._writes, lambda: self._inner.acknowledge(claim, attempt=attempt))

    async def acknowledge_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        rejected: Sequence[RejectedEntry] = (),
        attempt: DeliveryAttempt | None = None,
    ) -> None:
        await self._in(
            self._writes,
            lambda: self._inner.acknowledge_some(claim, delivered=delivered, rejected=rejected, attempt=attempt),
        )

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        if attempt is not None:
            await self.note_attempt(claim.sink, attempt)
        await self._inner.release(claim)

    async def note_attempt(self, sink: int, attempt: DeliveryAttempt) -> None:
        await self._in(self._writes, lambda: self._inner.note_attempt(sink, attempt))

    async def note_blocker(self, sink: int, blocker: LaneBlocker | None) -> None:
        await self._in(self._writes, lambda: self._inner.note_blocker(sink, blocker))


class ThreadedCommands:
    """Executes commands on a mirror in memory, in one thread as the one in a file does.

    A mirror in memory has one pipeline for all sinks, so every requested pipeline means that one.
    """

    def __init__(self, inner: MemoryMirror, on_pending: Callable[[int], None]) -> None:
        self._inner = inner
        self._on_pending = on_pending
        self._thread = ThreadPoolExecutor(1)

    async def _in(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await in_thread(self._thread, lambda: run_inline(work()))

    async def retry(self, selection: Selection) -> Retried:
        done = await self._in(lambda: self._inner.retry(selection))
        for lane in run_inline(self._inner.lanes()):
            self._on_pending(lane.id)
        return done

    async def drop(self, selection: Selection) -> int:
        return await self._in(lambda: self._inner.drop(selection))

    async def bound(self, *, keep_seconds: float | None, keep_rows: int | None) -> int:
        return await self._in(lambda: self._inner.bound(keep_seconds=keep_seconds, keep_rows=keep_rows))

    async def begin_check(self, sink: int) -> int:
        return await self._in(lambda: self._inner.begin_check(sink))

    async def show(self, check: int, entries: pl.DataFrame) -> None:
        await self._in(lambda: self._inner.show(check, entries))

    async def end_check(
        self, check: int, *, unexplained: RemoveUnexplained = "keep", doubt: bool = False
    ) -> DriftStatus:
        return await self._in(lambda: self._inner.end_check(check, unexplained=unexplained, doubt=doubt))

    async def abandon_check(self, check: int, failure: str) -> None:
        await self._in(lambda: self._inner.abandon_check(check, failure))

    async def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:  # noqa: ARG002 - it has one
        one = (MemoryMirror.pipeline,)
        count = await self._in(lambda: self._inner.repair(sink, one, remove_added=remove_added))
        self._on_pending(sink)
        return count

    async def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:  # noqa: ARG002 - it has one
        return await self._in(lambda: self._inner.adopt_drift(sink, (MemoryMirror.pipeline,)))
