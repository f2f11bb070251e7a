"""The two mirrors of the simulation: the real one in a file, and the one in memory with threads as those of the real one."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ingestd.mirror.port import Claim, DeliveryAttempt
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


class _Threaded:
    """Executes calls to a mirror in memory as the one in a file does: in threads, shielded, each atomically.

    ``reads``: the methods with a thread of their own.
    """

    def __init__(self, inner: MemoryMirror, *reads: str) -> None:
        self._inner = inner
        self._reads = reads
        self._pools = {is_read: ThreadPoolExecutor(1) for is_read in (False, True)}

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._inner, name)

        async def call(*args: Any, **named: Any) -> Any:
            return await in_thread(self._pools[name in self._reads], lambda: run_inline(method(*args, **named)))

        return call


class ThreadedMirror(_Threaded):
    """Executes calls of the delivery."""

    def __init__(self, inner: MemoryMirror, on_pending: Callable[[int], None]) -> None:
        super().__init__(inner, "lanes", "lane", "claim")
        self._on_pending = on_pending

    async def forget_sink(self, sink: int, *, lost: str = "") -> bool:
        is_forgotten: bool = await self.__getattr__("forget_sink")(sink, lost=lost)
        if is_forgotten:
            self._on_pending(sink)
        return is_forgotten

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        if attempt is not None:
            await self.note_attempt(claim.sink, attempt)
        await self._inner.release(claim)


class ThreadedCommands(_Threaded):
    """Executes commands on a mirror in memory.

    A mirror in memory has one pipeline for all sinks, so every requested pipeline means that one.
    """

    def __init__(self, inner: MemoryMirror, on_pending: Callable[[int], None]) -> None:
        super().__init__(inner)
        self._on_pending = on_pending

    async def retry(self, selection: Selection) -> Retried:
        done: Retried = await self.__getattr__("retry")(selection)
        for lane in run_inline(self._inner.lanes()):
            self._on_pending(lane.id)
        return done

    async def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:  # noqa: ARG002 - it has one
        count: int = await self.__getattr__("repair")(sink, (MemoryMirror.pipeline,), remove_added=remove_added)
        self._on_pending(sink)
        return count

    async def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:  # noqa: ARG002 - it has one
        adopted: int = await self.__getattr__("adopt_drift")(sink, (MemoryMirror.pipeline,))
        return adopted
