"""Runs the readers of all sources: on events, on schedules, when files become stable, and after a backoff."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.intake.notice import OperatorNotice, SourceHealth
from ingestd.intake.pass_report import PassReport
from ingestd.intake.pause import IntakePause
from ingestd.intake.reader import Reader
from ingestd.intake.rescans import Rescans
from ingestd.intake.thread_pool import SLOW_SENTENCE, SourceThreads
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import KeepRunning, one_line
from ingestd.sdk import Listens, Watches
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceAway, SourceBack, SourceFailed

T = TypeVar("T")

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
_FULL_DISK_SECONDS = 10.0
_LONGEST_RETRY_SECONDS = 86_400.0
"""Time until an acknowledgement that could not be stored is repeated."""
_LOOKUP_SECONDS = 5.0
"""Time between two looks at the files of lookups."""
_GRIDS_SECONDS = (10.0, 1.0)
"""Rescans are due at whole multiples of the first of these that is short enough, so that one call of a thread makes many."""


class SourcesRetried(NamedTuple):
    """The pipelines with a source that is read ``now``; ``later``: the seconds for which other sources asked to wait."""

    now: tuple[str, ...]
    later: Mapping[str, float]


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
        self._rescans: Rescans[_Pass] = Rescans(self._threads)
        self._keep_running = keep_running
        self._emit = emit
        self._random = random
        self._pause = IntakePause(emit=emit, random=random)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, _ReaderTask] = {}
        self._ending: dict[str, tuple[_ReaderTask, asyncio.Task[None]]] = {}
        """Removed readers with a call of the source that has not returned yet."""
        self._paused: frozenset[str] = frozenset()
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
                rescans=self._rescans,
                pause=self._pause,
                emit=self._emit,
                random=self._random,
                watched=reader.pipeline not in scheduled,
                former=former,
            )
            reader.pause(reader.pipeline in self._paused)
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
                # Without it the group would end with the last reader, and could take no new one.
                group.create_task(self._rescans.run(), name="rescans of sources at rest")
                for task in self._tasks.values():
                    self._start(group, task)
        finally:
            self._group = None
            await self.aclose()

    async def read_once(self, names: Collection[str] | None = None) -> list[PassReport]:
        """Read the named sources (None: all) once, wait for files that become ready soon, and return the reports in order.

        A paused source is not read and has no report.
        A source with an unexpected exception is reported as broken.

        Raises:
            MirrorError: the state file cannot be used.
        """
        chosen = [task for name, task in self._tasks.items() if names is None or name in names]
        chosen = [task for task in chosen if not task.reader.is_paused]
        return [report for task in chosen for report in await task.read_until_ready()]

    async def acknowledge(self) -> None:
        """Notify all connectors now of their acknowledged partitions.

        Raises:
            MirrorError: the state file cannot be used.
        """
        async with asyncio.TaskGroup() as group:  # a source that hangs delays no other source
            for task in self._tasks.values():
                group.create_task(task.guarded("acknowledging", task.acknowledge))

    def use_pauses(self, names: Collection[str]) -> None:
        """Pause the pipelines ``names``, and only these. A running pass ends at its next batch.

        What would have been read meanwhile is read when the pause ends: the next scheduled run included.
        """
        self._paused = frozenset(names)
        for name, task in self._tasks.items():
            if task.reader.is_paused != (name in self._paused):
                task.pause(name in self._paused)

    def wake(self, pipeline: str) -> None:
        """Read a source now; nothing if the pipeline was removed meanwhile. Thread-safe."""
        if (task := self._tasks.get(pipeline)) is not None:
            task.wake(read=True)

    def retry_now(self) -> SourcesRetried:
        """Read each source with a failed last pass now. A wait that the source asked for continues."""
        failed = {name: task for name, task in self._tasks.items() if task.has_failed}
        later = {name: wait for name, task in failed.items() if (wait := task.wait_seconds) > 0}
        for name, task in failed.items():
            if name not in later:
                task.wake(read=True)
        return SourcesRetried(now=tuple(name for name in failed if name not in later), later=later)

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

    @property
    def paused(self) -> str:
        """Why all pipelines wait, because the state file could not be written; empty if they do not."""
        return self._pause.sentence

    def notices(self) -> tuple[OperatorNotice, ...]:
        """Return the notices for the operator. Thread-safe; calls no source."""
        slow = (
            OperatorNotice(pipeline=pipeline, sentence=SLOW_SENTENCE, state="unavailable")
            for pipeline in self._threads.slow()
        )
        return (*slow, *(notice for reader in self.readers for notice in reader.notices()))

    def health(self) -> tuple[SourceHealth, ...]:
        """Return the states of the sources that have a connection. Thread-safe; calls no source that would wait."""
        return tuple(found for reader in self.readers if (found := reader.health()) is not None)

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


class _Pass(NamedTuple):
    """A pass, and what followed it.

    ``ready``: the seconds until a file is ready; ``rescan``: those until the next rescan; ``acknowledged``: the result of
    `acknowledge`.
    """

    report: PassReport
    ready: float | None
    rescan: float | None
    acknowledged: bool


class _ReaderTask:
    """Calls one reader when there is a reason to, one call at a time."""

    def __init__(
        self,
        reader: Reader,
        *,
        threads: SourceThreads,
        rescans: Rescans[_Pass],
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
        self._rescans = rescans
        self._emit = emit
        self._random = random
        self._watched = watched
        self.turn: asyncio.Lock = former[0].turn if former is not None else asyncio.Lock()
        self._former = former[1] if former is not None else None
        self._wakeup = ChangeSignal()
        self._to_read = watched
        self._failures = 0
        self._not_before = 0.0
        self.has_failed = False
        """Whether the last pass could not read the source at all or in part."""
        self._has_jitter = True
        self._rescan_at: float | None = None
        """The loop time of the next pass without another reason; a later request replaces it."""
        self._rescanned: Future[_Pass] | None = None
        """A pass of `Rescans` with a result that `run` has to handle."""

    @property
    def pipeline(self) -> str:
        """The name of the pipeline."""
        return self.reader.pipeline

    def wake(self, *, read: bool) -> None:
        """Notify the connector of acknowledged partitions, and read if ``read``. Thread-safe.

        A call before `run` takes effect when `run` starts, because the schedule repeats missed runs at once.
        """
        if read:
            self._to_read = True
        self._wakeup.notify()

    def pause(self, paused: bool) -> None:
        """Do not read until the pause ends. Then a source without a schedule is read, and one that missed a run."""
        self.reader.pause(paused)
        if not paused:
            self.wake(read=self._watched)

    @property
    def wait_seconds(self) -> float:
        """For how long the source asked not to be read; 0 if it may be."""
        return max(0.0, self._not_before - self._in(0.0))

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
                if self.reader.is_paused:  # a pass that is due meanwhile is made when the pause ends
                    self._to_read, read_at = self._to_read or read_at is not None, None
                elif self._to_read and asyncio.get_running_loop().time() < self._not_before:
                    read_at = self._not_before  # also if a schedule asks earlier: the source asked for the wait
                elif self._to_read:
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
            self._rescan_at = None
            self._to_read = self._to_read or self._watched
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
            future = await self._threads.start(lambda: self.pipeline, call)
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
        """Make one pass; return the loop time of the next one, unless a wake-up or a rescan comes before; None: never.

        Also return the result of `acknowledge` after the pass; None if a full disk ended the pass.
        """
        self._to_read = False
        self._rescan_at = None
        try:
            async with self._pause.attempt(self.pipeline) as attempt:
                rescanned, self._rescanned = self._rescanned, None
                made = rescanned.result() if rescanned is not None else await self.in_thread(self.make_pass)
                attempt.wrote = bool(made.report.read)
        except MirrorFull:
            return self._in(0.0), None  # the pause delays the next attempt
        except Exception:
            self._to_read = True
            raise
        report = made.report
        self._to_read = self._to_read or report.cut
        self.has_failed = bool(report.failure or report.rejected)
        if report.away:
            self._failures += 1
            asked = min(report.retry_after, _LONGEST_RETRY_SECONDS)
            self._not_before = self._in(asked) if asked > 0 else 0.0
            delay = max(asked, _BACKOFF.delay(self._failures, self._random()))
            self._emit(
                SourceAway(pipeline=self.reader.pipeline, sentence=report.away, retry_in_seconds=round(delay, 1))
            )
            return self._in(delay), made.acknowledged
        if self._failures:
            self._failures = 0
            self._emit(SourceBack(pipeline=self.reader.pipeline))
        self._add_rescan(made.rescan)
        return self._in(made.ready) if made.ready is not None else None, made.acknowledged

    async def begin_rescan(self, at: float) -> bool:
        """See `RestingSource.begin_rescan`. A source that is not at rest reads by itself."""
        if at != self._rescan_at:
            return False
        self._rescan_at = None
        is_asked = self._to_read or self._failures or self._not_before > self._in(0.0) or self.reader.is_paused
        if is_asked or self.turn.locked() or self._pause.is_paused:
            self.wake(read=True)
            return False
        await self.turn.acquire()
        return True

    def end_rescan(self, outcome: Future[_Pass] | None) -> None:
        """See `RestingSource.end_rescan`."""
        self.turn.release()
        if outcome is None:
            return
        made = outcome.result() if outcome.exception() is None else None
        if made is not None and made.acknowledged and made.ready is None and not made.report.away:
            self.has_failed = bool(made.report.failure)
            self._add_rescan(made.rescan)
        else:
            self._rescanned = outcome
            self.wake(read=True)

    def make_pass(self) -> _Pass:
        """Make one pass, then `acknowledge`. Blocks."""
        report = self.reader.read_pass()
        connector = self.reader.connector
        rescan = connector.rescan_seconds if self._watched and isinstance(connector, Watches) else None
        # Nothing is acknowledged before the entries of this pass are, and that wakes this task. Until then the delivery, which
        # sends them now, needs the interpreter and the state file.
        is_pending = bool(report.read) and all(run.created or run.updated or run.removed for run in report.read)
        return _Pass(report, connector.waiting(), rescan, is_pending or self.acknowledge())

    def _in(self, seconds: float) -> float:
        """Return the loop time in ``seconds`` from now."""
        return asyncio.get_running_loop().time() + seconds

    def _add_rescan(self, seconds: float | None) -> None:
        if seconds is None:
            return
        # The first rescan has jitter, so that sources that start together are not always rescanned together.
        due = self._in(seconds * (1 - self._random() / 2) if self._has_jitter else seconds)
        self._has_jitter = False
        grid = next((grid for grid in _GRIDS_SECONDS if seconds > 2 * grid), 0.0)
        self._rescan_at = math.floor(due / grid) * grid if grid else due
        self._rescans.add(self, self._rescan_at)
