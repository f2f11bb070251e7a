"""Sources of the simulation: scripted partitions that wake their pipeline, and a reader for plans with many sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ingestd.core.address import SinkAddress
from ingestd.intake import PassReport
from ingestd.sdk import Acknowledgement, Batch, Cursor, Partition, SourceUnavailable
from tests.simulation.pausable_thread import pause
from tests.support.memory_mirror import MemoryMirror
from tests.support.scripted_source import Script, ScriptedConnector


class WatchedSource(ScriptedConnector):
    """Wakes its pipeline when a partition was written. ``away``: for this number of passes it cannot be reached.

    Everything else may run between its batches, and before it records an acknowledgement. ``stopped_readings``: the number of
    readings that a stop has ended before their last batch.
    """

    def __init__(
        self, script: Script, *, watchers: dict[str, Callable[[], None]], name: str, rescan_seconds: float
    ) -> None:
        super().__init__(script)
        self.rescan_seconds = rescan_seconds
        self._watchers = watchers
        self._name = name
        self.away = 0
        self.stopped_readings = 0
        self._interrupted = False

    @contextmanager
    def watch(self, wake: Callable[[], None]) -> Iterator[None]:
        self._watchers[self._name] = wake
        yield
        self._watchers.pop(self._name, None)

    def partitions(self) -> list[Partition]:
        if self.away:
            self.away -= 1
            raise SourceUnavailable("The share is away.")
        return list(super().partitions())

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        last = False
        self._interrupted = False
        try:
            for batch in super().read(partition, cursor):
                pause()
                last = batch.last
                yield batch
        finally:
            self.stopped_readings += self._interrupted and not last

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        pause()
        super().acknowledge(partition, cursor, acknowledgement)

    def interrupt(self) -> None:
        self._interrupted = True


class DirectReader:
    """Replaces a `Reader` in plans with many sinks: its rows are entries, so it tests no mapping."""

    lookups = None

    def __init__(self, pipeline: str, source: WatchedSource, *, mirror: MemoryMirror, sink: SinkAddress) -> None:
        self.pipeline = pipeline
        self.connector = source
        self.sink = sink
        self.on_pending: Callable[[int], None] = lambda _: None
        self._mirror = mirror
        self._lane: int | None = None
        self._read: dict[str, int] = {}
        self._acknowledged: dict[str, int] = {}

    def stop(self) -> None:
        """Do nothing: a pass is one step here and cannot be stopped."""

    def pause(self, paused: bool) -> None:
        self.is_paused = paused

    def reset(self) -> None:
        self._read.clear()

    def notices(self) -> tuple[()]:
        return ()

    def read_pass(self) -> PassReport:
        try:
            partitions = self.connector.partitions()
        except SourceUnavailable as error:
            return PassReport(pipeline=self.pipeline, away=str(error))
        for partition in partitions:
            content = self.connector.script.contents[partition.name]
            if self._read.get(partition.name) != content.version:
                self._read[partition.name] = content.version
                wanted = {str(row["k"]): (row["v"], "scalar") for row in content.rows}
                self._lane = self._mirror.desire(self.sink, wanted)
                if self._mirror.pending(self._lane):
                    self.on_pending(self._lane)
        return PassReport(pipeline=self.pipeline)

    def acknowledge_partitions(self) -> int:
        if self._lane is None or self._mirror.pending(self._lane):
            return 0
        acknowledged = 0
        for name, version in self._read.items():
            if self._acknowledged.get(name) != version:
                self._acknowledged[name] = version
                self.connector.script.acknowledged.append((name, version))
                acknowledged += 1
        return acknowledged
