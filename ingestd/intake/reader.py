"""Reads the source of one pipeline: compares, maps and stores each partition with new content."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now
from ingestd.core.contract import Contract
from ingestd.core.errors import MirrorError, SourceBroken, SourceUnavailable, SourceUnmounted
from ingestd.core.groups import Aggregation
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import Mapping
from ingestd.core.phrases import named
from ingestd.core.record import Partition
from ingestd.intake.connector_reports import connector_health
from ingestd.intake.lookup_files import LookupFiles
from ingestd.intake.notice import SourceHealth
from ingestd.intake.partition_acknowledger import PartitionAcknowledger
from ingestd.intake.partition_batches import PartitionBatches
from ingestd.intake.partition_reader import Attempt, PartitionReader, StoredPartition
from ingestd.intake.pass_report import PassReport
from ingestd.intake.removed_partitions import RemovedPartitions
from ingestd.intake.source_failures import SourceFailures
from ingestd.mirror.port import RunSummary, WriteBatch
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.progress import note_progress
from ingestd.process.supervision import one_line
from ingestd.sdk import Connector, Holds
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import PartitionRejected

_TOGETHER_SECONDS = 0.05
"""Maximum time to read small partitions before they are stored, and to store them in one transaction."""

_TOGETHER_RECORDS = 5_000
"""Maximum number of records of small partitions in memory before they are stored: the size of a request."""


class _ReadPass(msgspec.Struct):
    read: list[RunSummary] = msgspec.field(default_factory=list)
    partitions: list[Partition] = msgspec.field(default_factory=list)
    rejected: dict[str, str] = msgspec.field(default_factory=dict)
    away: str = ""
    retry_after: float = 0.0
    held: bool = False
    unmounted: bool = False

    def note_away(self, error: SourceUnavailable) -> None:
        """Keep the first reason and the longest wait."""
        self.unmounted = self.unmounted or isinstance(error, SourceUnmounted)
        self.away = self.away or str(error)
        self.retry_after = max(self.retry_after, error.retry_after)


class Reader:
    """Reads one source. All methods block. One thread at a time may call them, except the thread-safe methods.

    Thread-safe: `stop`, `pause`, `remap`, `columns_of`, `notices`, `health` and `unacknowledged`. ``clock``: monotonic seconds;
    ``now``: seconds since the epoch. ``on_pass`` is called with the report of each pass. ``lookups``: the files of the
    mapping's lookups. ``guard`` decides whether a run of a snapshot partition is held. ``groups``: the group stage before the
    mapping. Temporary files of large readings are in ``folder``.
    """

    def __init__(
        self,
        *,
        pipeline: str,
        connector: Connector,
        mapping: Mapping,
        contract: Contract | None = None,
        sink: SinkAddress,
        mirror: IntakeStore,
        emit: Emit,
        guard: Guard = DEFAULT_GUARD,
        clock: Callable[[], float] = time.monotonic,
        now: Now = time.time,
        on_pass: Callable[[PassReport], None] = lambda _: None,
        lookups: LookupFiles | None = None,
        groups: Aggregation | None = None,
        folder: Path = Path(),
    ) -> None:
        self.pipeline = pipeline
        self.connector = connector
        self.sink = sink
        self._mirror = mirror
        self._emit = emit
        self._clock = clock
        self._now = now
        self._on_pass = on_pass
        self.lookups = lookups
        self._has_tables = False
        self._stopped = threading.Event()
        self._must_end = threading.Event()
        """If set, the running pass ends at its next batch, even if the pause that set the event has already ended."""
        self._remap = threading.Event()
        self._failures = SourceFailures(pipeline, connector, emit)
        self._partitions = PartitionReader(
            pipeline=pipeline, connector=connector, mapping=mapping, contract=contract, sink=sink, mirror=mirror, guard=guard,
            clock=clock, groups=groups, folder=folder, must_end=self._must_end, failures=self._failures,
        )  # fmt: skip
        self._acknowledger = PartitionAcknowledger(pipeline, connector, mirror, emit=emit, failures=self._failures)
        self._removed = RemovedPartitions(pipeline, connector, mirror.pruner, emit=emit, failures=self._failures)
        self.notices, self.unacknowledged = self._failures.notices, self._failures.of_partition

    @property
    def digest(self) -> str:
        """The digest of the mapping; see `PartitionReader.digest`."""
        return self._partitions.digest

    def stop(self) -> None:
        """End the running pass at its next batch. Committed batches stay; the other batches are read after the next start."""
        self._stopped.set()
        self._must_end.set()
        self.connector.context.stopping.set()
        self.connector.interrupt()

    def pause(self, paused: bool) -> None:
        """End the running pass at its next batch, because the pipeline is paused; or permit reading again. Thread-safe."""
        if paused:
            self.connector.context.paused.set()
            self._must_end.set()
        else:
            self.connector.context.paused.clear()

    @property
    def is_paused(self) -> bool:
        """Whether an operator has paused the pipeline. Thread-safe."""
        return self.connector.context.paused.is_set()

    def columns_of(self, key: str, member: str) -> tuple[str, ...]:
        """Return the source columns that a key of the mapping is made of. Thread-safe."""
        return self._partitions.mapping.columns_of(key, member)

    def remap(self) -> None:
        """Make the next pass map retried records. For this, the pass first resets the connector's memory of its partitions."""
        self._remap.set()

    def read_pass(self) -> PassReport:
        """Read every partition once. The report contains the failures of the source; they are not raised.

        Raises:
            MirrorError: the state file failed; committed batches stay.
        """
        note_progress()  # one call of a thread may make several passes
        self._must_end.clear()
        # Both flags are read after the clear, so that no call of `stop` or `pause` is lost.
        if self._stopped.is_set() or self.is_paused:
            self._must_end.set()
        began = self._now()
        try:
            report = self._read_partitions(began)
        except MirrorError:
            raise
        except Exception as error:
            failure = f"The source failed: {one_line(error)}. The log has the traceback; please report it."
            self._on_pass(PassReport(pipeline=self.pipeline, broken=failure, began=began))
            raise
        if report.read and not report.cut:
            self._removed.prune()
        if report.complete:
            self._mirror.note_pass(self.pipeline, began=report.began, whole=report.whole)
        self._on_pass(report)
        return report

    def _read_partitions(self, began: float) -> PassReport:
        found = _ReadPass()
        broken = ""
        try:
            self._read_all(found)
        except SourceUnavailable as error:
            found.note_away(error)
        except SourceBroken as error:
            broken = str(error)
            self._failures.report_stopped(broken)
        else:
            if not self._must_end.is_set():  # else a part of the source was not listed
                self._removed.drop_rejections({one.name for one in found.partitions})
                # The connector lists a rejected partition again until it has moved the partition.
                for failures in (self._failures.unreadable, self._failures.unmoved):
                    failures.keep_only(found.rejected)
        for failures, sentence in ((self._failures.away, found.away), (self._failures.stops, broken)):
            failures.keep_only({sentence})
            if sentence:
                failures.record(sentence, sentence)
        stopped = "" if isinstance(self.connector, Holds) else next(iter(found.rejected.values()), "")
        failed = bool(found.away or broken or found.rejected)
        cut, waits = self._must_end.is_set(), self.connector.waiting() is not None
        return PassReport(
            pipeline=self.pipeline,
            read=tuple(found.read),
            away=found.away,
            retry_after=found.retry_after,
            broken=broken,
            rejected=tuple(named(name, sentence) for name, sentence in found.rejected.items()),
            began=began,
            complete=not (failed or cut or found.held or waits),
            waits=waits,
            held=found.held,
            cut=cut,
            stopped=stopped,
            unmounted=found.unmounted,
            whole=bool(found.partitions) and all(one.snapshot and one.deletes == "remove" for one in found.partitions),
        )

    def _read_lookups(self) -> None:
        """Use the current tables of the lookups. If a table has changed, every record is mapped again."""
        tables = self.lookups.read() if self.lookups is not None else None
        if tables is not None:
            self._partitions.mapping = self._partitions.mapping.with_tables(tables)
            if self._has_tables:
                self._remap.set()
            self._has_tables = True

    def _read_all(self, found: _ReadPass) -> None:
        """Read all partitions.

        Small partitions are read first and then stored together. Larger partitions are stored while they are read.
        """
        self._read_lookups()
        small: deque[PartitionBatches] = deque()
        try:
            until, records = 0.0, 0
            for partition in self._list_partitions():
                if self._must_end.is_set():
                    break
                found.partitions.append(partition)
                reading = self._read_small(partition) if partition.small and partition.snapshot else None
                if reading is None:
                    self._store_small(small, found)
                    self._read_and_store(partition, found)
                    continue
                if not small:
                    until, records = self._clock() + _TOGETHER_SECONDS, 0
                small.append(reading)
                records += reading.records
                if self._clock() >= until or records >= _TOGETHER_RECORDS:
                    self._store_small(small, found)
        finally:
            self._store_small(small, found)

    def _read_small(self, partition: Partition) -> PartitionBatches | None:
        """Read a small partition without storing it; return None if it is larger than expected."""
        cursor = self._partitions.known_cursor(partition)
        with PartitionBatches(self.connector.read(partition, cursor), partition, cursor) as reading:
            return reading if reading.fetch() else None

    def _store_small(self, small: deque[PartitionBatches], found: _ReadPass) -> None:
        """Store small partitions that were read, as many as possible in each transaction.

        An unforeseen exception of one partition is raised after the other partitions are stored.
        """
        failure: Exception | None = None
        self._map_together(small)
        while small:
            try:
                self._store_together(small, found)
            except MirrorError:
                small.clear()
                raise
            except Exception as error:  # noqa: BLE001 - raised below
                failure = failure or error
        if failure is not None:
            raise failure

    def _map_together(self, small: Iterable[PartitionBatches]) -> None:
        """Map small partitions at once, unless a contract or a group changes their records."""
        readings = [reading for reading in small if reading.fetched]
        if len(readings) < 2 or not self._partitions.maps_as_read:
            return
        try:
            mapped = self._partitions.mapping.map_together([reading.fetched[0] for reading in readings])
        except Exception:  # noqa: BLE001 - the partitions are then mapped one by one, and only the cause raises again
            return
        for reading, of_reading in zip(readings, mapped, strict=True):
            reading.mapped = of_reading

    def _store_together(self, small: deque[PartitionBatches], found: _ReadPass) -> None:
        """Store small partitions in one transaction, up to a time limit. Effects outside the mirror follow the commit.

        If a partition must be read again, the transaction ends: later partitions must be stored after its second reading.
        """
        until = self._clock() + _TOGETHER_SECONDS
        stored: list[tuple[Partition, StoredPartition]] = []
        written = WriteBatch()
        try:
            with self._mirror.batch(self.pipeline) as written:
                is_due = False
                while small and not is_due:
                    reading = small.popleft()
                    result = self._partitions.store(reading.partition, Attempt(), reading)
                    stored.append((reading.partition, result))
                    is_due = result.again is not None or self._clock() >= until
        finally:
            for partition, result in stored if written.is_durable else ():
                self._conclude(partition, result, found)

    def _read_and_store(self, partition: Partition, found: _ReadPass) -> None:
        """Read a partition, and store each batch before the next batch is read."""
        self._conclude(partition, self._partitions.store(partition, Attempt()), found)

    def _conclude(self, partition: Partition, result: StoredPartition, found: _ReadPass) -> None:
        """Report a durable result. If the result has ``again``, first read the partition again."""
        while result.again is not None:
            for event in result.events:
                self._emit(event)
            result = self._partitions.store(partition, result.again)
        for event in result.events:
            self._emit(event)
        found.held = found.held or result.held
        match result.failure:
            case SourceUnavailable():
                found.note_away(result.failure)
            case SourceBroken():
                found.rejected[partition.name] = str(result.failure)
                self._reject(partition, str(result.failure))
        if result.summary is not None:
            found.read.append(result.summary)

    def acknowledge_partitions(self) -> int:
        """Notify the connector of each acknowledged partition; return the number of successful notifications.

        Raises:
            MirrorError: the state file failed.
        """
        return self._acknowledger.acknowledge()

    def health(self) -> SourceHealth | None:
        """Return the state of the source's connection; None if it has no connection that stays open. Thread-safe."""
        return connector_health(self.pipeline, self.connector)

    def _list_partitions(self) -> Iterable[Partition]:
        if self._remap.is_set():
            self._remap.clear()
            self.connector.reset()
        return self.connector.partitions()

    def _reject(self, partition: Partition, reason: str) -> None:
        self._removed.note_rejected()
        is_new = self._failures.unreadable.record(partition.name, reason)
        try:
            self.connector.failed(partition, reason)
        except Exception as error:  # noqa: BLE001 - as in PartitionAcknowledger
            self._failures.report(self._failures.unmoved, partition.name, error)
        else:
            self._failures.unmoved.clear(partition.name)
        if is_new:  # from now on the connector explains the partition
            self._emit(PartitionRejected(pipeline=self.pipeline, partition=partition.name, sentence=reason))
