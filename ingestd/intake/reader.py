"""Reads the source of one pipeline: compares, maps and stores each partition with new content."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, moment
from ingestd.core.contract import Contract, ContractCheck
from ingestd.core.errors import MirrorError, RecordUnreadable, SourceBroken, SourceUnavailable, SourceUnmounted
from ingestd.core.groups import Aggregation
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import Mapping
from ingestd.core.phrases import named
from ingestd.core.record import Batch, Cursor, Partition
from ingestd.intake.connector_reports import connector_notices
from ingestd.intake.difference import SPILL_PARTS
from ingestd.intake.entry_sorter import EntrySorter
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.lookup_files import LookupFiles
from ingestd.intake.notice import Failures, NoticeState, OperatorNotice, SourceHealth
from ingestd.intake.partition_acknowledger import PartitionAcknowledger
from ingestd.intake.partition_batches import PartitionBatches
from ingestd.intake.retried_records import map_retried
from ingestd.intake.run import Run
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import PartitionState, RunSummary, WriteBatch
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.progress import note_progress
from ingestd.process.redaction import redact_text
from ingestd.process.supervision import one_line
from ingestd.sdk import ConnectionHealth, Connector, Holds, ReadsSections
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.intake import (
    ContentKnown,
    PartitionParked,
    PartitionRead,
    PartitionReadAgain,
    PartitionUnchanged,
    RecordsParked,
    RunHeld,
    RunReleased,
    SettlingFailed,
    SourceStopped,
)
from ingestd.telemetry.catalogue.rejected import RejectionsDropped

_TOGETHER_SECONDS = 0.05
"""The time for which small partitions are read before they are stored, and for which they are stored in one transaction."""

_TOGETHER_RECORDS = 5_000
"""The most records of small partitions in memory before they are stored: the size of a request."""

_STOPPED = "the reading was stopped before the partition's end"
_NO_END = (
    "The connector did not mark the end of the reading: no batch has last=True. What it yielded is stored. Report this to the"
    " author of the connector."
)

_NOTICES = 5
"""Maximum number of different reasons that are reported in full; further ones are counted."""


class PassReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pass over a source.

    ``read``: the runs of the partitions with something to read. ``away``: why a partition or the source is unavailable now;
    empty if all are available. ``retry_after``: the seconds for which it asked not to be read. ``broken``: why the source can't
    be used as configured; empty if it can. ``rejected``: partitions that can't be read as configured, each with the reason.
    ``began``: when the pass began, in seconds since the epoch. ``complete``: every partition was read to its end or is unchanged.
    ``whole``: the source has partitions, and all of them are snapshots with ``deletes: remove``, so it names all its entries.
    ``held``: a partition has a held or discarded run. ``stopped``: why a permanent partition can't be read, such as a table;
    empty for a file. ``unmounted``: the source is unavailable because its share is not mounted.
    """

    pipeline: str
    read: tuple[RunSummary, ...] = ()
    away: str = ""
    retry_after: float = 0.0
    broken: str = ""
    rejected: tuple[str, ...] = ()
    began: float = 0.0
    complete: bool = False
    whole: bool = False
    held: bool = False
    stopped: str = ""
    unmounted: bool = False

    @property
    def failure(self) -> str:
        """Why the source could not be read, or not to its end; empty if it could. A rejected file is no failure."""
        return self.away or self.broken or self.stopped


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


class _Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a partition.

    ``whole``: map every record, without differences. ``collided``: the run with differences that did not show which record owns
    a key. ``is_reread``: the partition had been read before that run.
    """

    whole: bool = False
    collided: int | None = None
    is_reread: bool = False


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one reading of a partition. Its effects outside the mirror follow the commit.

    ``summary``: of the run; None: there was nothing to store, or the reading failed. ``failure``: why the partition could not be
    read. ``again``: how it must be read again.
    """

    summary: RunSummary | None = None
    held: bool = False
    events: tuple[Event, ...] = ()
    failure: SourceUnavailable | SourceBroken | None = None
    again: _Attempt | None = None


class Reader:
    """Reads one source. All methods block and belong to one thread, except the thread-safe ones.

    Thread-safe: `stop`, `pause`, `remap`, `columns_of`, `notices`, `health` and `unacknowledged`. ``clock``: monotonic seconds;
    ``now``: seconds since the epoch.
    ``on_pass`` is called with the report of each pass. ``lookups``: the files of the mapping's lookups. ``guard`` decides
    whether a run of a snapshot partition is held. ``groups``: the group stage before the mapping. Temporary files of large
    readings are in ``folder``.
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
        # Once, because the check of a protocol takes longer than other steps of a small file.
        self._sections = connector if isinstance(connector, ReadsSections) else None
        self.sink = sink
        self._mapping = mapping
        self._contract = contract
        self._mirror = mirror
        self._emit = emit
        self._guard = guard
        self._clock = clock
        self._now = now
        self._on_pass = on_pass
        self.lookups = lookups
        self._groups = groups
        self._folder = folder
        self._has_tables = False
        self._may_be_removed = True
        """Whether a rejected file may be known, which a person can remove."""
        self._stopped = threading.Event()
        self._remap = threading.Event()
        now = connector.context.now
        self._unacknowledged, self._unmoved, self._unreadable = (Failures(now) for _ in range(3))
        """Why partitions are not acknowledged, not moved after a rejection, or not readable."""
        self._away, self._stops = Failures(now), Failures(now)
        """Why the source is not available, or can't be used as configured."""
        self._uncommitted = Failures(now)
        """Why connectors could not handle the commits of partitions."""
        self._acknowledger = PartitionAcknowledger(
            pipeline, connector, mirror, emit=emit, failures=self._unacknowledged, report=self._report_unacknowledged
        )

    @property
    def _digest(self) -> str:
        """The digest of groups, mapping, tables and contract: partitions that were read with another digest are read again."""
        digest = self._mapping.digest
        if self._groups is not None:
            digest = self._groups.digest_with(digest)
        return digest if self._contract is None else self._contract.digest_with(digest)

    @property
    def _uses_facts(self) -> bool:
        return bool(self._mapping.facts or (self._groups is not None and self._groups.facts))

    def stop(self) -> None:
        """End the running pass at its next batch; committed batches stay, the rest is read after the next start."""
        self._stopped.set()
        self.connector.context.stopping.set()
        self.connector.interrupt()

    def pause(self, paused: bool) -> None:
        """End the running pass at its next batch, because the pipeline is paused, or let it be read again. Thread-safe."""
        if paused:
            self.connector.context.paused.set()
        else:
            self.connector.context.paused.clear()

    @property
    def is_paused(self) -> bool:
        """Whether an operator has paused the pipeline. Thread-safe."""
        return self.connector.context.paused.is_set()

    @property
    def _is_ending(self) -> bool:
        return self._stopped.is_set() or self.is_paused

    def columns_of(self, key: str, member: str) -> tuple[str, ...]:
        """Return the source columns that a key of the mapping is made of. Thread-safe."""
        return self._mapping.columns_of(key, member)

    def remap(self) -> None:
        """Map retried records at the next pass: it resets what the connector remembers of its partitions."""
        self._remap.set()

    def read_pass(self) -> PassReport:
        """Read every partition once. The report contains the failures of the source; they are not raised.

        Raises:
            MirrorError: the state file failed; committed batches stay.
        """
        note_progress()  # several passes may be one call
        began = self._now()
        try:
            report = self._read_partitions(began)
        except MirrorError:
            raise
        except Exception as error:
            failure = f"The source failed: {one_line(error)}. The log has the traceback; please report it."
            self._on_pass(PassReport(pipeline=self.pipeline, broken=failure, began=began))
            raise
        if report.read:
            self._prune()
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
            self._report_stopped(broken)
        else:
            self._drop_removed()
            # The connector lists a rejected partition again until it has moved it.
            for failures in (self._unreadable, self._unmoved):
                failures.keep_only(found.rejected)
        for failures, sentence in ((self._away, found.away), (self._stops, broken)):
            failures.keep_only({sentence})
            if sentence:
                failures.record(sentence, sentence)
        stopped = "" if isinstance(self.connector, Holds) else next(iter(found.rejected.values()), "")
        failed = bool(found.away or broken or found.rejected) or self._is_ending
        return PassReport(
            pipeline=self.pipeline,
            read=tuple(found.read),
            away=found.away,
            retry_after=found.retry_after,
            broken=broken,
            rejected=tuple(named(name, sentence) for name, sentence in found.rejected.items()),
            began=began,
            complete=not failed and not found.held and self.connector.waiting() is None,
            held=found.held,
            stopped=stopped,
            unmounted=found.unmounted,
            whole=bool(found.partitions) and all(one.snapshot and one.deletes == "remove" for one in found.partitions),
        )

    def _drop_removed(self) -> None:
        """Drop the rejections of files that a person has removed. The whole source was listed."""
        if not self._may_be_removed or not isinstance(self.connector, Holds) or self.connector.moves_failed:
            return
        rejected = self._mirror.pruner.rejected_partitions(self.pipeline)
        self._may_be_removed = bool(rejected)
        for identity, name in rejected:
            if not self.connector.holds(name):
                self._mirror.pruner.drop_rejected(identity)
                self._emit(RejectionsDropped(by="", chosen=f"the removed file {name}", rejections=1))

    def _read_lookups(self) -> None:
        """Use the current tables of the lookups. Another table means another mapping: every record is mapped again."""
        tables = self.lookups.read() if self.lookups is not None else None
        if tables is not None:
            self._mapping = self._mapping.with_tables(tables)
            if self._has_tables:
                self._remap.set()
            self._has_tables = True

    def _read_all(self, found: _ReadPass) -> None:
        """Read all partitions: small ones are read first and then stored together, others are stored while they are read."""
        self._read_lookups()
        small: deque[PartitionBatches] = deque()
        try:
            until, records = 0.0, 0
            for partition in self._list_partitions():
                if self._is_ending:
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
        cursor = self._mirror.known_cursor(self.pipeline, partition.name, self.sink, self._digest)
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
        """Map small partitions at once, unless a contract or a group makes other records of them."""
        readings = [reading for reading in small if reading.fetched]
        if len(readings) < 2 or self._contract is not None or self._groups is not None:
            return
        try:
            mapped = self._mapping.map_together([reading.fetched[0] for reading in readings])
        except Exception:  # noqa: BLE001 - each is mapped alone then, and the one that can't be mapped raises it
            return
        for reading, of_reading in zip(readings, mapped, strict=True):
            reading.mapped = of_reading

    def _store_together(self, small: deque[PartitionBatches], found: _ReadPass) -> None:
        """Store small partitions in one transaction, for some time. What must follow the commit follows it.

        A partition that must be read again ends the transaction, because of equal keys the value of the later partition counts.
        """
        until = self._clock() + _TOGETHER_SECONDS
        stored: list[tuple[Partition, _Stored]] = []
        written = WriteBatch()
        try:
            with self._mirror.batch(self.pipeline) as written:
                is_due = False
                while small and not is_due:
                    reading = small.popleft()
                    result = self._store(reading.partition, _Attempt(), reading)
                    stored.append((reading.partition, result))
                    is_due = result.again is not None or self._clock() >= until
        finally:
            for partition, result in stored if written.is_durable else ():
                self._conclude(partition, result, found)

    def _read_and_store(self, partition: Partition, found: _ReadPass) -> None:
        """Read a partition, and store each batch before the next one is read."""
        self._conclude(partition, self._store(partition, _Attempt()), found)

    def _conclude(self, partition: Partition, result: _Stored, found: _ReadPass) -> None:
        """Report a durable result; first read the partition again if the result asks for that."""
        while result.again is not None:
            for event in result.events:
                self._emit(event)
            result = self._store(partition, result.again)
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

    def notices(self) -> list[OperatorNotice]:
        """Return the notices for the operator. Thread-safe."""
        # A table that can't be read stops the source; a file does not, and is rejected.
        stops = (self._stops,) if isinstance(self.connector, Holds) else (self._stops, self._unreadable)
        unfinished = (self._unacknowledged, self._uncommitted, self._unmoved)
        groups: tuple[tuple[NoticeState, tuple[Failures, ...]], ...] = (
            ("unavailable", (self._away,)), ("failed", stops), ("attention", unfinished),
        )  # fmt: skip
        reasons: dict[str, OperatorNotice] = {}
        for state, groups_of_state in groups:
            for sentence, since in (found for each in groups_of_state for found in each.by_sentence().items()):
                notice = OperatorNotice(pipeline=self.pipeline, sentence=sentence, since=since, state=state)
                reasons.setdefault(sentence, notice)
        known = list(reasons.values())[:_NOTICES]
        if len(reasons) > _NOTICES:
            more = f"{len(reasons) - _NOTICES} more reasons block its files; 'ingestd why FILE' reports the reason of a file."
            known.append(OperatorNotice(pipeline=self.pipeline, sentence=more, state="attention"))
        return known + connector_notices(self.pipeline, self.connector)

    def health(self) -> SourceHealth | None:
        """Return the state of the source's connection; None if it has none that stays open. Thread-safe."""
        try:
            found = self.connector.health()
        except Exception as error:  # noqa: BLE001 - a plug-in's failure must not end the status
            found = ConnectionHealth(
                sentence=f"The connector failed to report its state: {one_line(error)}. Please report it."
            )
        if found is None:
            return None
        return SourceHealth(
            pipeline=self.pipeline,
            sentence=redact_text(found.sentence),
            connected_since=found.connected_since,
            lag_seconds=found.lag_seconds,
            dropped=found.dropped,
            stays_connected=found.stays_connected,
        )

    def unacknowledged(self, partition: str) -> OperatorNotice | None:
        """Return why the connector can't acknowledge a partition, such as an unmovable file, or None. Thread-safe."""
        known = self._unacknowledged.get(partition) or self._unmoved.get(partition)
        return OperatorNotice(pipeline=self.pipeline, sentence=known[0], since=known[1]) if known is not None else None

    def _prune(self) -> None:
        """Delete rows that are no longer needed, a few at each pass with new content."""
        if isinstance(self.connector, Holds):
            for identity, name in self._mirror.pruner.old_partitions(self.pipeline):
                try:
                    gone = not self.connector.holds(name)
                except SourceUnavailable:
                    break  # an unavailable source does not show whether it has a partition
                except Exception as error:  # noqa: BLE001 - a plug-in's failure to look at one file must not stop other partitions
                    self._report_unacknowledged(self._unacknowledged, name, error)
                    continue
                if gone:
                    self._mirror.pruner.note_gone(identity)
        self._mirror.pruner.prune()

    def _list_partitions(self) -> Iterable[Partition]:
        if self._remap.is_set():
            self._remap.clear()
            self.connector.reset()
        return self.connector.partitions()

    def _store(self, partition: Partition, attempt: _Attempt, reading: PartitionBatches | None = None) -> _Stored:
        """Store one partition: ``reading``, or what is read now. A result with ``again`` has recorded nothing as read."""
        state = self._mirror.open_partition(self.pipeline, partition, self.sink, self._digest)
        if not partition.replayable:
            map_retried(self._mirror, state.id, self._mapping)
        self.connector.pause_backfill(state.withheld is not None)
        try:
            with ExitStack() as files:
                sorter = files.enter_context(EntrySorter(self._folder))
                hashes = files.enter_context(closing(SpillFile(self._folder, parts=SPILL_PARTS, content="row hashes")))
                groups = (
                    files.enter_context(GroupStage(self._groups, self._folder)) if self._groups is not None else None
                )
                result = self._store_batches(
                    partition, state, attempt, reading, groups=groups, sorter=sorter, hashes=hashes
                )
        except (SourceUnavailable, SourceBroken) as failure:
            return _Stored(failure=failure)
        if not partition.snapshot and partition.replayable and result.summary is not None:
            map_retried(self._mirror, state.id, self._mapping)
        return result

    def _known_content(self, partition: Partition, run: int, sha256: str, *, is_reread: bool) -> Iterator[Event]:
        """Yield an event for content that was read before, which is often a mistake but harmless.

        ``is_reread``: the partition was read before, so its own earlier content is reported, too.
        """
        known = self._mirror.known_content(run, sha256) if sha256 else None
        if known is None or (known[0] == partition.name and not is_reread):
            return
        name, at = known
        content = "the content it had" if name == partition.name else f"the content of {name}, which was read"
        sentence = f"{partition.name} has {content} {moment(at)}."
        yield ContentKnown(pipeline=self.pipeline, partition=partition.name, sentence=sentence)

    def _store_batches(
        self,
        partition: Partition,
        state: PartitionState,
        attempt: _Attempt,
        reading: PartitionBatches | None,
        *,
        groups: GroupStage | None,
        sorter: EntrySorter,
        hashes: SpillFile,
    ) -> _Stored:
        contract = ContractCheck(self._contract) if self._contract is not None else None
        guard = self._guard if partition.snapshot and self._guard.covers(partition.deletes) else None
        can_hold = guard is not None or (partition.snapshot and contract is not None and contract.contract.can_hold)
        can_hold = can_hold or state.after_rollback
        withheld = state.withheld if can_hold and not attempt.whole else None
        cursor = None if attempt.whole else withheld or state.cursor
        if reading is not None and reading.cursor != cursor:
            return _Stored(again=attempt)
        run = Run(
            self._mirror, self._mapping, partition, state, whole=attempt.whole, contract=contract, guard=guard,
            groups=groups, sorter=sorter, hashes=hashes,
            prepared=reading.prepared if reading is not None else lambda _: None, clock=self._clock,
        )  # fmt: skip
        try:
            if reading is None:
                reading = PartitionBatches(self._begin_reading(partition, cursor, run), partition, cursor)
            # Closed at once, because the traceback of an exception would keep the source's file open.
            with reading:
                return self._take_batches(
                    run,
                    reading,
                    state,
                    attempt,
                    is_held=withheld is not None or (state.after_rollback and not attempt.whole),
                )
        except SourceUnavailable as error:
            run.fail(str(error), broken=False)
            raise
        except SourceBroken as error:
            run.fail(str(error), broken=True)
            raise

    def _take_batches(
        self, run: Run, reading: PartitionBatches, state: PartitionState, attempt: _Attempt, *, is_held: bool
    ) -> _Stored:
        """Store the batches of a reading. ``is_held``: it is compared with the held or discarded run of the partition."""
        summary = None
        for batch in reading:
            if batch.unchanged and is_held:
                # After a rejection, the reading shows that the content can be read again.
                return _Stored(again=_Attempt(whole=True)) if state.is_rejected else _Stored(held=True)
            if self._needs_whole(batch, state, is_held=is_held):
                return _Stored(again=_Attempt(whole=True))
            summary = run.take(batch)
            self._report_committed(reading.partition, batch.cursor, rejection=run.batch_rejection)
            if self._is_ending:
                break
        if summary is not None:
            return self._ended(run, summary, reading.partition, state, attempt)
        run.fail(_STOPPED if self._is_ending else _NO_END, broken=False)
        return _Stored(held=state.withheld is not None)

    def _ended(
        self, run: Run, summary: RunSummary, partition: Partition, state: PartitionState, attempt: _Attempt
    ) -> _Stored:
        """Return the result of a complete run."""
        is_reread = state.cursor is not None
        if summary.collided:
            return _Stored(
                events=(PartitionReadAgain(pipeline=self.pipeline, partition=partition.name),),
                again=_Attempt(whole=True, collided=summary.id, is_reread=is_reread),
            )
        first = summary.id
        if attempt.collided is not None:
            first, is_reread = attempt.collided, attempt.is_reread
        known = self._known_content(partition, first, run.sha256, is_reread=is_reread)
        return _Stored(
            summary=summary,
            held=summary.withheld is not None,
            events=(*self._run_events(run, summary, partition), *known),
        )

    def _report_committed(self, partition: Partition, cursor: Cursor, *, rejection: str) -> None:
        """Notify the connector of a durable commit. A failure does not end the reading, because the records are stored.

        ``rejection``: why all records are rejected.
        """
        if partition.snapshot:
            return  # durable only as a whole
        try:
            if rejection:
                self.connector.batch_rejected(partition, rejection)
            self.connector.committed(partition, cursor)
        except Exception as error:  # noqa: BLE001 - the next commit repeats what a plug-in has failed to do
            self._report_unacknowledged(self._uncommitted, partition.name, error)
        else:
            self._uncommitted.clear(partition.name)

    def _begin_reading(
        self, partition: Partition, cursor: Cursor | None, run: Run
    ) -> Iterator[Batch | RecordUnreadable]:
        """Read a partition; without its known sections, if nothing but the records decides their row hashes.

        A contract and groups look at every record, and a fact may differ although the records do not.
        """
        can_compare = partition.snapshot and self._contract is None and self._groups is None and not self._uses_facts
        if can_compare and self._sections is not None:
            return self._sections.read_sections(partition, cursor, run.load_sections)
        return self.connector.read(partition, cursor)

    def _needs_whole(self, batch: Batch, state: PartitionState, *, is_held: bool) -> bool:
        """Return True if the batch does not contain, or does not show, what must be mapped."""
        if batch.partial:
            return is_held  # it lacks what the held run would have changed
        # Another partition has changed entries since, or the mapping uses facts: the content alone proves nothing.
        return batch.unchanged and (not state.current or self._uses_facts)

    def _reject(self, partition: Partition, reason: str) -> None:
        self._may_be_removed = True
        is_new = self._unreadable.record(partition.name, reason)
        try:
            self.connector.failed(partition, reason)
        except Exception as error:  # noqa: BLE001 - as in PartitionAcknowledger
            self._report_unacknowledged(self._unmoved, partition.name, error)
        else:
            self._unmoved.clear(partition.name)
        if is_new:  # from now on the connector explains the partition
            self._emit(PartitionParked(pipeline=self.pipeline, partition=partition.name, sentence=reason))

    def _report_unacknowledged(self, failures: Failures, name: str, error: Exception) -> None:
        """Record a failed acknowledgement, and log it once for each reason, because it is retried often."""
        sentence = str(error) or type(error).__name__
        if failures.record(name, sentence):
            self._emit(SettlingFailed(pipeline=self.pipeline, partition=name, sentence=sentence))

    def _report_stopped(self, sentence: str) -> None:
        """Log a broken source once for each reason, because it is retried often."""
        if self._stops.get(sentence) is None:
            self._emit(SourceStopped(pipeline=self.pipeline, sentence=sentence))

    def _run_events(self, run: Run, summary: RunSummary, partition: Partition) -> Iterator[Event]:
        about = {"pipeline": self.pipeline, "partition": partition.name}
        held = summary.withheld
        if held is not None:
            if held.run == summary.id:
                yield RunHeld(**about, run=held.run, sentence=held.sentence)
            return
        if summary.replaces is not None:
            yield RunReleased(**about, run=summary.replaces, decision="replaced", by="")
        seconds = round(run.seconds, 3)
        if not (summary.changed or summary.valueless):
            yield PartitionUnchanged(**about, records=summary.records, seconds=seconds)
            return
        yield PartitionRead(
            **about,
            records=summary.records,
            created=summary.created,
            updated=summary.updated,
            unchanged=summary.unchanged,
            removed=summary.removed,
            rejected=summary.rejected,
            valueless=summary.valueless,
            seconds=seconds,
            map_seconds=round(run.map_seconds, 6),
            store_seconds=round(run.store_seconds, 6),
            notice=summary.notice,
        )
        if summary.rejected:
            sentence = run.first_reject or "'ingestd rejected list' shows the reasons"
            yield RecordsParked(**about, records=summary.rejected, sentence=sentence)
