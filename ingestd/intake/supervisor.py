"""Runs the readers of all sources: on events, on schedules, when files become stable, and after a backoff."""

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
from ingestd.sdk import Listens, Watches
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceAway, SourceBack, SourceFailed

T = TypeVar("T")

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
_FULL_DISK_SECONDS = 10.0
"""Time until an acknowledgement that could not be stored is repeated."""
_LOOKUP_SECONDS = 5.0
"""Time between two looks at the files of lookups."""
_GRID_SECONDS = 1.0
"""Rescans are due at whole multiples of this, so that one wake-up of the process handles all that are due."""


class SourceSupervisor:
    """Runs the readers, each as a part of ``keep_running`` with the name ``intake PIPELINE``.

    An unexpected exception of one source ends only its part. ``scheduled``: the pipelines that are read only when `wake` is
    called, and on events only if they listen. ``random`` returns numbers from 0 to 1 for the jitter.
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
        self._emit = emit
        self._random = random
        self._pause = IntakePause(emit=emit, random=random)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, _ReaderTask] = {}
        self._ending: dict[str, tuple[_ReaderTask, asyncio.Task[None]]] = {}
        """Removed readers of which a call of the source has not returned yet."""
        self._closing: asyncio.Task[None] | None = None
        self._by_sink: dict[SinkAddress, list[_ReaderTask]] = {}
        self.add(readers, scheduled=scheduled)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers in use, in the order in which they were added."""
        return tuple(task.reader for task in self._tasks.values())

    def add(self, readers: Sequence[Reader], *, scheduled: Collection[str]) -> None:
        """Add readers; those of names in ``scheduled`` are read only when `wake` is called.

        A former reader with the same name is closed before the source of the new one is called.
        """
        for reader in readers:
            former = self._ending.get(reader.pipeline)
            task = _ReaderTask(
                reader,
                threads=self._threads,
                pause=self._pause,
                emit=self._emit,
                random=self._random,
                watched=reader.pipeline not in scheduled,
                former=former,
            )
            # Replaced instead of changed, because other threads read it.
            self._tasks = {**self._tasks, reader.pipeline: task}
            if self._group is not None:
                self._start(self._group, task)
        self._index_sinks()

    async def remove(self, names: Collection[str], *, wait_seconds: float) -> None:
        """End the passes of readers at their next batches, notify their connectors of acknowledged partitions, and close them.

        Return after ``wait_seconds`` even if a call of a source has not returned; its reader is then closed later.

        Raises:
            MirrorError: the state file cannot be used.
        """
        removed = {name: self._tasks[name] for name in names}
        self._tasks = {name: task for name, task in self._tasks.items() if name not in removed}
        self._index_sinks()
        for task in removed.values():
            task.reader.stop()
        for name, task in removed.items():
            ending = asyncio.create_task(self._end(name, task), name=f"end of {name}")
            # A late failure is that of the state file, which ends every other part, too.
            ending.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._ending[name] = (task, ending)
        endings = {self._ending[name][1] for name in removed}
        if endings:
            done, _ = await asyncio.wait(endings, timeout=wait_seconds)
            for ending in done:
                ending.result()

    async def _end(self, name: str, task: _ReaderTask) -> None:
        try:
            await task.cancel_parts()
            await task.guarded("acknowledging", task.acknowledge)
            await task.close()
        finally:
            if self._ending.get(name, (None,))[0] is task:
                del self._ending[name]

    def _index_sinks(self) -> None:
        self._by_sink = {}
        for task in self._tasks.values():
            self._by_sink.setdefault(task.reader.sink, []).append(task)

    def _start(self, group: asyncio.TaskGroup, task: _ReaderTask) -> None:
        name = task.reader.pipeline
        part = f"intake {name}"
        task.parts.append(group.create_task(self._keep_running(part, task.run), name=part))
        if task.watches_lookups:
            part = f"lookups {name}"
            task.parts.append(group.create_task(self._keep_running(part, task.watch_lookups), name=part))

    async def run(self) -> None:
        """Read until cancelled. A running pass then ends at its next batch.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for task in self._tasks.values():
                    self._start(group, task)
                # Without it the group would end with the last reader, and could take no new one.
                group.create_task(asyncio.Event().wait(), name="supervisor of further readers")
        finally:
            self._group = None
            await self.aclose()

    async def read_once(self, names: Collection[str] | None = None) -> list[PassReport]:
        """Read the named sources (None: all) once, wait for files that become ready soon, and return the reports in order.

        A source with an unexpected exception is reported as broken.

        Raises:
            MirrorError: the state file cannot be used.
        """
        chosen = [task for name, task in self._tasks.items() if names is None or name in names]
        return [report for task in chosen for report in await task.read_until_ready()]

    async def acknowledge(self) -> None:
        """Notify all connectors now of their acknowledged partitions.

        Raises:
            MirrorError: the state file cannot be used.
        """
        async with asyncio.TaskGroup() as group:  # a source that hangs does not delay the others
            for task in self._tasks.values():
                group.create_task(task.guarded("acknowledging", task.acknowledge))

    def wake(self, pipeline: str) -> None:
        """Read a source now; nothing if the pipeline was removed meanwhile. Thread-safe."""
        if (task := self._tasks.get(pipeline)) is not None:
            task.wake(read=True)

    def remap(self, pipeline: str, *, now: bool) -> None:
        """Map retried records of a pipeline at its next reading, which is ``now`` or when it is due. Thread-safe.

        Nothing happens if the pipeline was removed meanwhile.
        """
        if (task := self._tasks.get(pipeline)) is not None:
            task.reader.remap()
            if now:
                task.wake(read=True)

    async def between_passes(self, pipeline: str, call: Callable[[], T]) -> T:
        """Run a call when no pass over the pipeline's source runs, and return its result."""
        return await self._tasks[pipeline].in_thread(call)

    def on_acknowledged(self, sink: SinkAddress | None = None) -> None:
        """Wake the sources of a sink's pipelines (None: all), because entries were acknowledged. Thread-safe."""
        # The pipeline of a sink that is no longer configured may be any of those that are.
        for task in self._by_sink.get(sink, self._tasks.values()) if sink is not None else self._tasks.values():
            task.wake(read=False)

    def notices(self) -> tuple[OperatorNotice, ...]:
        """Return the notices for the operator. Thread-safe; calls no source."""
        slow = (OperatorNotice(pipeline=pipeline, sentence=SLOW_SENTENCE) for pipeline in self._threads.slow())
        return (*slow, *(notice for reader in self.readers for notice in reader.notices()))

    def reader(self, pipeline: str) -> Reader | None:
        """Return the reader of a pipeline, or None if there is no such pipeline. Thread-safe."""
        task = self._tasks.get(pipeline)
        return task.reader if task is not None else None

    async def aclose(self) -> None:
        """Close the sources and end the threads. `run` does this at its end; a second call has no effect."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="closing the sources")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.reader.stop()
        for task in self._tasks.values():
            await task.close()
        for _, ending in list(self._ending.values()):
            await asyncio.wait([ending])
        await self._threads.close()


class _ReaderTask:
    """Calls one reader when there is a reason to, one call at a time."""

    def __init__(
        self,
        reader: Reader,
        *,
        threads: SourceThreads,
        pause: IntakePause,
        emit: Emit,
        random: Callable[[], float],
        watched: bool,
        former: tuple[_ReaderTask, asyncio.Task[None]] | None,
    ) -> None:
        self.reader = reader
        self.parts: list[asyncio.Task[None]] = []
        self._pause = pause
        self._threads = threads
        self._emit = emit
        self._random = random
        self._watched = watched
        self.turn: asyncio.Lock = former[0].turn if former is not None else asyncio.Lock()
        self._former = former[1] if former is not None else None
        self._wakeup = ChangeSignal()
        self._to_read = watched
        self._failures = 0
        self._rescans = 0

    def wake(self, *, read: bool) -> None:
        """Notify the connector of acknowledged partitions, and read if ``read``. Thread-safe.

        A call before `run` takes effect when `run` starts, because the schedule repeats missed runs at once.
        """
        if read:
            self._to_read = True
        self._wakeup.notify()

    async def run(self) -> None:
        """Read when there is a reason to, until cancelled. After a failure, a new call reads at once."""
        if self._former is not None:
            await asyncio.wait([self._former])
            self._former = None
        watch = ExitStack()
        try:
            await self.in_thread(lambda: self._watch(watch))
            read_at: float | None = None
            while True:
                known = self._wakeup.generation
                acknowledged: bool | None = None
                if self._to_read:
                    read_at, acknowledged = await self._read()
                if acknowledged is None:
                    acknowledged = await self.in_thread(self.acknowledge)
                if not acknowledged:
                    retry_at = self._in(_FULL_DISK_SECONDS)
                    read_at = retry_at if read_at is None else min(read_at, retry_at)
                seconds = None if read_at is None else max(0.0, read_at - asyncio.get_running_loop().time())
                if not await self._wakeup.wait_past(known, seconds=seconds):
                    self._to_read = True
        finally:
            await self.guarded("ending the watch", watch.close)

    @property
    def watches_lookups(self) -> bool:
        """Whether a changed file of a lookup wakes the source; a scheduled one reads the files when it is due."""
        return self._watched and bool(self.reader.lookups)

    async def watch_lookups(self) -> None:
        """Read when a file of a lookup may have changed, until cancelled."""
        lookups = self.reader.lookups
        # Polled, because a watch reports nothing about a file on a network share.
        while lookups is not None:
            await asyncio.sleep(_LOOKUP_SECONDS)
            if not self._to_read and await self.in_thread(lookups.may_differ):
                self.wake(read=True)

    def acknowledge(self) -> bool:
        """Notify the connector of acknowledged partitions; return False if a full disk prevents it. Blocks."""
        try:
            self.reader.acknowledge_partitions()
        except MirrorFull:
            return False
        return True

    async def read_until_ready(self) -> list[PassReport]:
        """Read until no file becomes ready soon. An unexpected exception adds a report with ``broken``."""
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
        """Call the source; log an unexpected exception and return a sentence about it.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            return await self.in_thread(call)
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

    async def cancel_parts(self) -> None:
        """End `run` and `watch_lookups`; a running call of the source ends first."""
        for part in self.parts:
            part.cancel()
        if self.parts:
            await asyncio.wait(self.parts)

    async def close(self) -> None:
        """Close the source after its running call has ended."""
        await self.guarded("closing", self.reader.connector.close)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call the source after its earlier call has ended, even if the caller of that one was cancelled."""
        await self.turn.acquire()
        try:
            future = await self._threads.start(self.reader.pipeline, call)
        except BaseException:
            self.turn.release()
            raise
        future.add_done_callback(lambda _: self.turn.release())
        return await asyncio.shield(future)

    def _watch(self, stack: ExitStack) -> None:
        connector = self.reader.connector
        if self._watched and isinstance(connector, Watches):
            stack.enter_context(connector.watch(lambda: self.wake(read=True)))
        if isinstance(connector, Listens):
            stack.enter_context(connector.listen(lambda: self.wake(read=True)))

    async def _read(self) -> tuple[float | None, bool | None]:
        """Make one pass; return the loop time of the next one, unless a wake-up comes before; None: never.

        Also return the result of `acknowledge` after the pass; None if a full disk ended the pass.
        """
        self._to_read = False
        try:
            async with self._pause.attempt(self.reader.pipeline) as attempt:
                report, ready, rescan, acknowledged = await self.in_thread(self._pass)
                attempt.wrote = bool(report.read)
        except MirrorFull:
            return self._in(0.0), None  # the pause delays the next attempt
        except Exception:
            self._to_read = True
            raise
        if report.away:
            self._failures += 1
            delay = _BACKOFF.delay(self._failures, self._random())
            self._emit(
                SourceAway(pipeline=self.reader.pipeline, sentence=report.away, retry_in_seconds=round(delay, 1))
            )
            return self._in(delay), acknowledged
        if self._failures:
            self._failures = 0
            self._emit(SourceBack(pipeline=self.reader.pipeline))
        times = [self._in(ready) if ready is not None else None, self._rescan_at(rescan)]
        return min((time for time in times if time is not None), default=None), acknowledged

    def _pass(self) -> tuple[PassReport, float | None, float | None, bool]:
        """Make one pass, then `acknowledge`, in one call of a thread.

        Return the report, the seconds until a file is ready, those until the next rescan, and the result of `acknowledge`.
        """
        report = self.reader.read_pass()
        connector = self.reader.connector
        rescan = connector.rescan_seconds if self._watched and isinstance(connector, Watches) else None
        return report, connector.waiting(), rescan, self.acknowledge()

    def _in(self, seconds: float) -> float:
        """Return the loop time in ``seconds`` from now."""
        return asyncio.get_running_loop().time() + seconds

    def _rescan_at(self, seconds: float | None) -> float | None:
        if seconds is None:
            return None
        # The first rescan has jitter, so that sources that start together are not always rescanned together.
        self._rescans += 1
        due = self._in(seconds * (1 - self._random() / 2) if self._rescans == 1 else seconds)
        return math.floor(due / _GRID_SECONDS) * _GRID_SECONDS if seconds > 2 * _GRID_SECONDS else due
