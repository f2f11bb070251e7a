"""Runs the readers of all sources: on events, on schedules, when files become stable, and after a backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ingestd.core.address import SinkAddress
from ingestd.intake.notice import OperatorNotice, SourceHealth
from ingestd.intake.pass_report import PassReport
from ingestd.intake.pause import IntakePause
from ingestd.intake.reader import Reader
from ingestd.intake.reader_task import MadePass, ReaderTask
from ingestd.intake.rescans import Rescans
from ingestd.intake.thread_pool import SLOW_SENTENCE, SourceThreads
from ingestd.process.supervision import KeepRunning
from ingestd.telemetry import Emit

T = TypeVar("T")


class SourcesRetried(NamedTuple):
    """The pipelines with sources that are read ``now``. ``later``: by pipeline, the seconds that other sources asked to wait."""

    now: tuple[str, ...]
    later: Mapping[str, float]


class SourceSupervisor:
    """Runs the readers, each as a part of ``keep_running`` with the name ``intake PIPELINE``.

    An unexpected exception of one source ends only its part. ``scheduled``: the pipelines that are read only when `wake` is
    called, or on events if their source listens. ``random`` returns numbers from 0 to 1 for the jitter.
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
        self._rescans: Rescans[MadePass] = Rescans(self._threads)
        self._keep_running = keep_running
        self._emit = emit
        self._random = random
        self._pause = IntakePause(emit=emit, random=random)
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, ReaderTask] = {}
        self._ending: dict[str, tuple[ReaderTask, asyncio.Task[None]]] = {}
        """Removed readers with a call of the source that has not returned yet."""
        self._paused: frozenset[str] = frozenset()
        self._closing: asyncio.Task[None] | None = None
        self._by_sink: dict[SinkAddress, list[ReaderTask]] = {}
        self.add(readers, scheduled=scheduled)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers in use, in the order in which they were added."""
        return tuple(task.reader for task in self._tasks.values())

    def add(self, readers: Sequence[Reader], *, scheduled: Collection[str]) -> None:
        """Add readers; readers with a name in ``scheduled`` read only when `wake` is called.

        A former reader with the same name is closed before the source of the new reader is called.
        """
        for reader in readers:
            former = self._ending.get(reader.pipeline)
            task = ReaderTask(
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
            # The mapping is replaced instead of changed, because other threads read it.
            self._tasks = {**self._tasks, reader.pipeline: task}
            if self._group is not None:
                self._start(self._group, task)
        self._index_sinks()

    async def remove(self, names: Collection[str], *, wait_seconds: float) -> None:
        """End the passes of readers at their next batches, notify their connectors of acknowledged partitions, and close them.

        Return after ``wait_seconds`` even if a call of a source has not returned. Its reader is then closed after the call.

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
            # Only the state file can fail this late, and its failure ends every other part, too.
            ending.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._ending[name] = (task, ending)
        endings = {self._ending[name][1] for name in removed}
        if endings:
            done, _ = await asyncio.wait(endings, timeout=wait_seconds)
            for ending in done:
                ending.result()

    async def _end(self, name: str, task: ReaderTask) -> None:
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

    def _start(self, group: asyncio.TaskGroup, task: ReaderTask) -> None:
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
                # Without this task, the group would end with the last reader, and no reader could be added.
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

        Readings that were due during the pause are made when the pause ends, including a scheduled run.
        """
        self._paused = frozenset(names)
        for name, task in self._tasks.items():
            if task.reader.is_paused != (name in self._paused):
                task.pause(name in self._paused)

    def wake(self, pipeline: str) -> None:
        """Read a source now. Does nothing if the pipeline was removed in the meantime. Thread-safe."""
        if (task := self._tasks.get(pipeline)) is not None:
            task.wake(read=True)

    def retry_now(self) -> SourcesRetried:
        """Read now each source with a failed last pass, except sources that asked to wait."""
        failed = {name: task for name, task in self._tasks.items() if task.has_failed}
        later = {name: wait for name, task in failed.items() if (wait := task.wait_seconds) > 0}
        for name, task in failed.items():
            if name not in later:
                task.wake(read=True)
        return SourcesRetried(now=tuple(name for name in failed if name not in later), later=later)

    def remap(self, pipeline: str, *, now: bool) -> None:
        """Map retried records of a pipeline at its next reading, which is ``now`` or when it is due. Thread-safe.

        Does nothing if the pipeline was removed in the meantime.
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
        # If no configured pipeline writes to the sink, any pipeline may have taken over the state of a former pipeline.
        for task in self._by_sink.get(sink, self._tasks.values()) if sink is not None else self._tasks.values():
            task.wake(read=False)

    @property
    def paused(self) -> str:
        """Why the state file can't be written, so that all pipelines wait; empty if they do not wait."""
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
