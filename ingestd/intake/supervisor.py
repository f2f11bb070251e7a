"""Keeps every source read: on events, on schedules, after a settle time, and after a backoff when a source is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from ingestd.core.backoff import Backoff
from ingestd.core.errors import MirrorFull
from ingestd.intake.reader import PassReport, Reader
from ingestd.sdk import Watches
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import IntakePaused, SourceAway, SourceBack

T = TypeVar("T")

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)


class Supervisor:
    """Runs the readers, each in a thread of its own.

    ``scheduled`` names the pipelines that are read when `wake` says so, and not by events. ``random`` gives numbers from 0
    to 1 for the jitter.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        *,
        emit: Emit,
        random: Callable[[], float],
        scheduled: Collection[str] = (),
    ) -> None:
        self._posts = {
            reader.pipeline: _Post(reader, emit=emit, random=random, watched=reader.pipeline not in scheduled)
            for reader in readers
        }

    async def run(self) -> None:
        """Until cancelled. A pass under way is let end at its next batch."""
        try:
            async with asyncio.TaskGroup() as group:
                for post in self._posts.values():
                    group.create_task(post.run(), name=f"intake {post.reader.pipeline}")
        finally:
            await self._close()

    async def read_once(self, names: Collection[str] | None = None) -> list[PassReport]:
        """One pass over the named sources (None: all), waiting for what is about to be ready; reports in order."""
        chosen = [post for name, post in self._posts.items() if names is None or name in names]
        return [report for post in chosen for report in await post.read_until_ready()]

    async def acknowledge(self) -> None:
        """Tell every source now what is settled."""
        for post in self._posts.values():
            await post.in_thread(post.reader.acknowledge_settled)

    def wake(self, pipeline: str) -> None:
        """Read a source now. Thread-safe."""
        self._posts[pipeline].ring(read=True)

    def again(self, pipeline: str, *, now: bool) -> None:
        """Records of a pipeline are to be mapped again at its next reading, which is ``now`` or when it is due. Thread-safe."""
        self._posts[pipeline].reader.again()
        if now:
            self.wake(pipeline)

    def settled(self) -> None:
        """Something was settled: sources may want to be told. Thread-safe."""
        for post in self._posts.values():
            post.ring(read=False)

    async def aclose(self) -> None:
        """Let go of threads and sources; for those who did not `run`."""
        await self._close()

    async def _close(self) -> None:
        for post in self._posts.values():
            await asyncio.shield(post.close())


class _Post:
    """One reader with its thread and its bell."""

    def __init__(self, reader: Reader, *, emit: Emit, random: Callable[[], float], watched: bool) -> None:
        self.reader = reader
        self._emit = emit
        self._random = random
        self._watched = watched
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"read-{reader.pipeline}")
        self._bell = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_read = watched
        self._failures = 0

    def ring(self, *, read: bool) -> None:
        """From any thread. What comes before `run` is kept for it: the schedule makes up for missed runs at once."""
        if self._loop is None:
            self._ring(read)
        else:
            self._loop.call_soon_threadsafe(self._ring, read)

    def _ring(self, read: bool) -> None:
        self._to_read = self._to_read or read
        self._bell.set()

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            if self._watched and isinstance(self.reader.connector, Watches):
                stack.enter_context(self.reader.connector.watch(lambda: self.ring(read=True)))
            await self.in_thread(self.reader.acknowledge_settled)
            look_at: float | None = None
            while True:
                if self._to_read:
                    self._to_read = False
                    wait = await self._read()
                    look_at = None if wait is None else self._loop.time() + wait
                await self.in_thread(self.reader.acknowledge_settled)
                self._to_read = not await self._rung(look_at) or self._to_read

    async def read_until_ready(self) -> list[PassReport]:
        """Passes until nothing is about to be ready."""
        reports = []
        while True:
            reports.append(await self.in_thread(self.reader.read_pass))
            wait = self.reader.connector.waiting()
            if wait is None or reports[-1].away:
                return reports
            await asyncio.sleep(wait)

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close(self) -> None:
        self.reader.stop()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        self.reader.connector.close()

    async def _read(self) -> float | None:
        """One pass; how long to wait for the next if nobody rings."""
        try:
            report = await self.in_thread(self.reader.read_pass)
        except MirrorFull as error:
            self._failures += 1
            delay = _BACKOFF.delay(self._failures, self._random())
            self._emit(
                IntakePaused(pipeline=self.reader.pipeline, sentence=str(error), retry_in_seconds=round(delay, 1))
            )
            return delay
        if report.away:
            self._failures += 1
            delay = _BACKOFF.delay(self._failures, self._random())
            self._emit(
                SourceAway(pipeline=self.reader.pipeline, sentence=report.away, retry_in_seconds=round(delay, 1))
            )
            return delay
        if self._failures:
            self._failures = 0
            self._emit(SourceBack(pipeline=self.reader.pipeline))
        return self._next_look()

    def _next_look(self) -> float | None:
        connector = self.reader.connector
        ready = connector.waiting()
        rescan = connector.rescan_seconds if self._watched and isinstance(connector, Watches) else None
        return min((seconds for seconds in (ready, rescan) if seconds is not None), default=None)

    async def _rung(self, look_at: float | None) -> bool:
        """Wait for the bell; False where the time to look again came first."""
        try:
            async with asyncio.timeout_at(look_at):
                await self._bell.wait()
        except TimeoutError:
            return False
        self._bell.clear()
        return True
