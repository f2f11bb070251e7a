"""Keeps every source read: on events, on schedules, after a settle time, and after a backoff when a source is away."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from typing import TypeVar

from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.intake.notice import OperatorNotice
from ingestd.intake.pause import IntakePause
from ingestd.intake.reader import PassReport, Reader
from ingestd.intake.thread_pool import SLOW_SENTENCE, SourceThreads
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import KeepRunning, one_line
from ingestd.sdk import Watches
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceAway, SourceBack, SourceFailed

T = TypeVar("T")

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
_FULL_DISK_SECONDS = 10.0
"""After so long an acknowledgement that could not be noted is repeated."""
_GRID_SECONDS = 1.0
"""Rescans are due at whole multiples of this, so that idle sources wake the process once for all that are due."""


class SourceSupervisor:
    """Runs the readers; each is a part of its own under ``keep_running``, called ``intake PIPELINE``.

    An unforeseen exception of one source ends that part only. ``scheduled`` names the pipelines that are read when `wake` is
    called, and not on events. ``random`` gives numbers from 0 to 1 for the jitter.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        *,
        emit: Emit,
        random: Callable[[], float],
        keep_running: KeepRunning,
        scheduled: Collection[str] = (),
    ) -> None:
        self._threads = SourceThreads(emit=emit)
        self._keep_running = keep_running
        pause = IntakePause(emit=emit, random=random)
        self._tasks = {
            reader.pipeline: _ReaderTask(
                reader,
                threads=self._threads,
                pause=pause,
                emit=emit,
                random=random,
                watched=reader.pipeline not in scheduled,
            )
            for reader in readers
        }
        self._closing: asyncio.Task[None] | None = None
        self._by_sink: dict[SinkAddress, list[_ReaderTask]] = {}
        for task in self._tasks.values():
            self._by_sink.setdefault(task.reader.sink, []).append(task)

    async def run(self) -> None:
        """Read until cancelled. A pass that is running ends at its next batch.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for name, task in self._tasks.items():
                    part = f"intake {name}"
                    group.create_task(self._keep_running(part, task.run), name=part)
        finally:
            await self.aclose()

    async def read_once(self, names: Collection[str] | None = None) -> list[PassReport]:
        """Read the named sources (None: all) once, waiting for what is about to be ready; return the reports in order.

        A source that fails with an unforeseen exception is reported as broken.

        Raises:
            MirrorError: the state file cannot be used.
        """
        chosen = [task for name, task in self._tasks.items() if names is None or name in names]
        return [report for task in chosen for report in await task.read_until_ready()]

    async def acknowledge(self) -> None:
        """Tell every source now which partitions are settled.

        Raises:
            MirrorError: the state file cannot be used.
        """
        async with asyncio.TaskGroup() as group:  # one that hangs must not keep the others from it
            for task in self._tasks.values():
                group.create_task(task.guarded("acknowledging", task.acknowledge))

    def wake(self, pipeline: str) -> None:
        """Read a source now. Thread-safe."""
        self._tasks[pipeline].wake(read=True)

    def again(self, pipeline: str, *, now: bool) -> None:
        """Map records of a pipeline again at its next reading, which is ``now`` or when it is due. Thread-safe."""
        self._tasks[pipeline].reader.again()
        if now:
            self.wake(pipeline)

    def settled(self, sink: SinkAddress | None = None) -> None:
        """Something of a sink was settled: wake the sources of its pipelines only (None: all). Thread-safe."""
        # A sink that only an earlier configuration names: its pipeline may be any of those that are configured now.
        for task in self._by_sink.get(sink, self._tasks.values()) if sink is not None else self._tasks.values():
            task.wake(read=False)

    def notices(self) -> tuple[OperatorNotice, ...]:
        """What an operator should know about the sources now. Thread-safe; calls no source."""
        slow = (OperatorNotice(pipeline=pipeline, sentence=SLOW_SENTENCE) for pipeline in self._threads.slow())
        return (*slow, *(notice for task in self._tasks.values() for notice in task.reader.notices()))

    async def aclose(self) -> None:
        """Close the sources and end the threads; needed only if `run` was not called, and harmless after it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="closing the sources")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.reader.stop()
        for task in self._tasks.values():
            await task.close()
        await self._threads.close()


class _ReaderTask:
    """One reader: why and when it is called, one call at a time."""

    def __init__(
        self,
        reader: Reader,
        *,
        threads: SourceThreads,
        pause: IntakePause,
        emit: Emit,
        random: Callable[[], float],
        watched: bool,
    ) -> None:
        self.reader = reader
        self._pause = pause
        self._threads = threads
        self._emit = emit
        self._random = random
        self._watched = watched
        self._turn = asyncio.Lock()
        self._wakeup = ChangeSignal()
        self._to_read = watched
        self._failures = 0
        self._rescans = 0

    def wake(self, *, read: bool) -> None:
        """Look at what is settled, and read if ``read``. From any thread.

        What comes before `run` is kept for it: the schedule makes up for missed runs at once.
        """
        if read:
            self._to_read = True
        self._wakeup.notify()

    async def run(self) -> None:
        """Read whenever there is a reason to, until cancelled. Called again after a failure, it reads at once."""
        watch = ExitStack()
        try:
            if self._watched:
                await self._in_thread(lambda: self._watch(watch))
            look_at: float | None = None
            while True:
                known = self._wakeup.generation
                if self._to_read:
                    look_at = await self._read()
                if not await self._in_thread(self.acknowledge):
                    again = self._in(_FULL_DISK_SECONDS)
                    look_at = again if look_at is None else min(look_at, again)
                seconds = None if look_at is None else max(0.0, look_at - asyncio.get_running_loop().time())
                if not await self._wakeup.wait_past(known, seconds=seconds):
                    self._to_read = True
        finally:
            await self.guarded("ending the watch", watch.close)

    def acknowledge(self) -> bool:
        """Tell the source what is settled; return False if there was no room to note all of that. Blocks."""
        try:
            self.reader.acknowledge_settled()
        except MirrorFull:
            return False
        return True

    async def read_until_ready(self) -> list[PassReport]:
        """Read until nothing is about to be ready; an unforeseen exception ends the last report as broken."""
        reports: list[PassReport] = []
        while True:
            done = await self.guarded("reading", lambda: (self.reader.read_pass(), self.reader.connector.waiting()))
            if isinstance(done, str):
                return [*reports, PassReport(pipeline=self.reader.pipeline, broken=done)]
            report, wait = done
            reports.append(report)
            if wait is None or report.away:
                return reports
            await asyncio.sleep(wait)

    async def guarded(self, doing: str, call: Callable[[], T]) -> T | str:
        """Call the source; report an unforeseen exception in the log and return a sentence on it.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            return await self._in_thread(call)
        except MirrorError:
            raise
        except Exception as error:  # noqa: BLE001 - a plug-in's failure must not stop the other sources
            sentence = (
                f"The source failed while {doing}: {one_line(error)}. The log has the traceback; please report it."
            )
            self._emit(
                SourceFailed(
                    pipeline=self.reader.pipeline,
                    sentence=sentence,
                    traceback="".join(traceback.format_exception(error)),
                )
            )
            return sentence

    async def close(self) -> None:
        """Close the source once the call that is running, if any, has ended."""
        await self.guarded("closing", self.reader.connector.close)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Call the source when its earlier call has ended, also if that call's caller was cancelled."""
        await self._turn.acquire()
        try:
            future = await self._threads.start(self.reader.pipeline, call)
        except BaseException:
            self._turn.release()
            raise
        future.add_done_callback(lambda _: self._turn.release())
        return await asyncio.shield(future)

    def _watch(self, stack: ExitStack) -> None:
        connector = self.reader.connector
        if isinstance(connector, Watches):
            stack.enter_context(connector.watch(lambda: self.wake(read=True)))

    async def _read(self) -> float | None:
        """Make one pass; return when to make the next unless something wakes the source before (None: never)."""
        self._to_read = False
        try:
            async with self._pause.attempt(self.reader.pipeline) as attempt:
                report, ready, rescan = await self._in_thread(self._pass)
                attempt.wrote = bool(report.read)
        except MirrorFull:
            return self._in(0.0)  # the pause says when it is this pipeline's turn again
        except Exception:
            self._to_read = True
            raise
        if report.away:
            self._failures += 1
            delay = _BACKOFF.delay(self._failures, self._random())
            self._emit(
                SourceAway(pipeline=self.reader.pipeline, sentence=report.away, retry_in_seconds=round(delay, 1))
            )
            return self._in(delay)
        if self._failures:
            self._failures = 0
            self._emit(SourceBack(pipeline=self.reader.pipeline))
        times = [self._in(ready) if ready is not None else None, self._rescan_at(rescan)]
        return min((time for time in times if time is not None), default=None)

    def _pass(self) -> tuple[PassReport, float | None, float | None]:
        """The report of one pass, the seconds until something is ready, and those until the next rescan."""
        report = self.reader.read_pass()
        connector = self.reader.connector
        rescan = connector.rescan_seconds if self._watched and isinstance(connector, Watches) else None
        return report, connector.waiting(), rescan

    def _in(self, seconds: float) -> float:
        return asyncio.get_running_loop().time() + seconds

    def _rescan_at(self, seconds: float | None) -> float | None:
        if seconds is None:
            return None
        # The first one comes early by chance: sources that start together must not be rescanned together for ever.
        self._rescans += 1
        due = self._in(seconds * (1 - self._random() / 2) if self._rescans == 1 else seconds)
        return math.floor(due / _GRID_SECONDS) * _GRID_SECONDS if seconds > 2 * _GRID_SECONDS else due
