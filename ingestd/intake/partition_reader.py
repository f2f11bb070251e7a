"""Reads one partition of a source: compares, maps and stores its new content."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment
from ingestd.core.contract import Contract, ContractCheck
from ingestd.core.errors import RecordUnreadable, SourceBroken, SourceUnavailable
from ingestd.core.groups import Aggregation
from ingestd.core.guard import Guard
from ingestd.core.mapping import Mapping
from ingestd.core.record import Batch, Cursor, Partition
from ingestd.intake.difference import SPILL_PARTS
from ingestd.intake.entry_sorter import EntrySorter
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.partition_batches import PartitionBatches
from ingestd.intake.partition_digest import partition_digest
from ingestd.intake.retried_records import map_retried
from ingestd.intake.run import Run
from ingestd.intake.run_events import run_events
from ingestd.intake.source_failures import SourceFailures
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import PartitionState, RunSummary
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.sdk import Connector, ReadsSections
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import ContentKnown, PartitionReadAgain

_STOPPED = "the reading was stopped before the partition's end"
_NO_END = (
    "The connector did not mark the end of the reading: no batch has last=True. The batches are stored. Report this to the"
    " author of the connector."
)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a partition.

    ``whole``: map every record, without differences. ``collided``: the id of the run with differences that did not show which
    record owns a key. ``is_reread``: the partition had been read before that run.
    """

    whole: bool = False
    collided: int | None = None
    is_reread: bool = False


class StoredPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one reading of a partition. Effects outside the mirror, such as events, must follow the commit.

    ``summary``: the summary of the run; None: there was nothing to store, or the reading failed. ``failure``: why the partition
    could not be read. ``again``: how the partition must be read again; None: it need not be read again.
    """

    summary: RunSummary | None = None
    held: bool = False
    events: tuple[Event, ...] = ()
    failure: SourceUnavailable | SourceBroken | None = None
    again: Attempt | None = None


class PartitionReader(msgspec.Struct, kw_only=True, eq=False):
    """Reads the partitions of one source; see `Reader` for the members. Belongs to the thread of the pass.

    ``mapping`` is replaced between two passes if the tables of its lookups change. ``must_end``: end a reading at its next batch.
    """

    pipeline: str
    connector: Connector
    mapping: Mapping
    contract: Contract | None
    sink: SinkAddress
    mirror: IntakeStore
    guard: Guard
    clock: Callable[[], float]
    groups: Aggregation | None
    folder: Path
    must_end: threading.Event
    failures: SourceFailures
    _sections: ReadsSections | None = None

    def __post_init__(self) -> None:
        """Check the protocol of the connector once, because the check takes longer than other steps of a small file."""
        self._sections = self.connector if isinstance(self.connector, ReadsSections) else None

    @property
    def maps_as_read(self) -> bool:
        """Whether the records of a batch are mapped unchanged: no contract and no group changes them."""
        return self.contract is None and self.groups is None

    @property
    def digest(self) -> str:
        """The digest of this reader; see `partition_digest`."""
        return partition_digest(self.mapping, self.groups, self.contract, self.connector)

    def known_cursor(self, partition: Partition) -> Cursor | None:
        """Return the cursor after which a partition is read; None: it is read from its start."""
        return self.mirror.known_cursor(self.pipeline, partition.name, self.sink, self.digest)

    @property
    def _uses_facts(self) -> bool:
        return bool(self.mapping.facts or (self.groups is not None and self.groups.facts))

    def store(self, partition: Partition, attempt: Attempt, reading: PartitionBatches | None = None) -> StoredPartition:
        """Store ``reading``, or a new reading of the partition. If the result has ``again``, read the partition again."""
        state = self.mirror.open_partition(self.pipeline, partition, self.sink, self.digest)
        if not partition.replayable:
            map_retried(self.mirror, state.id, self.mapping)
        self.connector.pause_backfill(state.withheld is not None)
        try:
            with ExitStack() as files:
                sorter = files.enter_context(EntrySorter(self.folder))
                hashes = files.enter_context(closing(SpillFile(self.folder, parts=SPILL_PARTS, content="row hashes")))
                groups = files.enter_context(GroupStage(self.groups, self.folder)) if self.groups is not None else None
                result = self._store_batches(
                    partition, state, attempt, reading, groups=groups, sorter=sorter, hashes=hashes
                )
        except (SourceUnavailable, SourceBroken) as failure:
            return StoredPartition(failure=failure)
        if not partition.snapshot and partition.replayable and result.summary is not None:
            map_retried(self.mirror, state.id, self.mapping)
        return result

    def _known_content(self, partition: Partition, run: int, sha256: str, *, is_reread: bool) -> Iterator[Event]:
        """Yield an event for content that was read before, which is often a mistake but harmless.

        ``is_reread``: the partition was read before, so its own earlier content is reported, too.
        """
        known = self.mirror.known_content(run, sha256) if sha256 else None
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
        attempt: Attempt,
        reading: PartitionBatches | None,
        *,
        groups: GroupStage | None,
        sorter: EntrySorter,
        hashes: SpillFile,
    ) -> StoredPartition:
        contract = ContractCheck(self.contract) if self.contract is not None else None
        guard = self.guard if partition.snapshot and self.guard.covers(partition.deletes) else None
        can_hold = guard is not None or (partition.snapshot and contract is not None and contract.contract.can_hold)
        can_hold = can_hold or state.after_rollback
        withheld = state.withheld if can_hold and not attempt.whole else None
        cursor = None if attempt.whole else withheld or state.cursor
        if reading is not None and reading.cursor != cursor:
            return StoredPartition(again=attempt)
        run = Run(
            self.mirror, self.mapping, partition, state, whole=attempt.whole, contract=contract, guard=guard,
            groups=groups, sorter=sorter, hashes=hashes,
            prepared=reading.prepared if reading is not None else lambda _: None, clock=self.clock,
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
        self, run: Run, reading: PartitionBatches, state: PartitionState, attempt: Attempt, *, is_held: bool
    ) -> StoredPartition:
        """Store the batches of a reading. ``is_held``: the reading is compared with the partition's held or discarded run."""
        summary = None
        for batch in reading:
            if batch.unchanged and is_held:
                # If a later reading rejected the partition, this reading shows that the content can be read now.
                return StoredPartition(again=Attempt(whole=True)) if state.is_rejected else StoredPartition(held=True)
            if self._needs_whole(batch, state, is_held=is_held):
                return StoredPartition(again=Attempt(whole=True))
            summary = run.take(batch)
            self._report_committed(reading.partition, batch.cursor, rejection=run.batch_rejection)
            if self.must_end.is_set():
                break
        if summary is not None:
            return self._ended(run, summary, reading.partition, state, attempt)
        run.fail(_STOPPED if self.must_end.is_set() else _NO_END, broken=False)
        return StoredPartition(held=state.withheld is not None)

    def _ended(
        self, run: Run, summary: RunSummary, partition: Partition, state: PartitionState, attempt: Attempt
    ) -> StoredPartition:
        """Return the result of a complete run."""
        is_reread = state.cursor is not None
        if summary.collided:
            return StoredPartition(
                events=(PartitionReadAgain(pipeline=self.pipeline, partition=partition.name),),
                again=Attempt(whole=True, collided=summary.id, is_reread=is_reread),
            )
        first = summary.id
        if attempt.collided is not None:
            first, is_reread = attempt.collided, attempt.is_reread
        known = self._known_content(partition, first, run.sha256, is_reread=is_reread)
        return StoredPartition(
            summary=summary,
            held=summary.withheld is not None,
            events=(*run_events(self.pipeline, partition, run, summary), *known),
        )

    def _report_committed(self, partition: Partition, cursor: Cursor, *, rejection: str) -> None:
        """Notify the connector of a durable commit. A failure does not end the reading, because the records are stored.

        ``rejection``: why all records are rejected.
        """
        if partition.snapshot:
            return  # a snapshot is durable only as a whole
        try:
            if rejection:
                self.connector.batch_rejected(partition, rejection)
            self.connector.committed(partition, cursor)
        except Exception as error:  # noqa: BLE001 - the next commit repeats what a plug-in has failed to do
            self.failures.report(self.failures.uncommitted, partition.name, error)
        else:
            self.failures.uncommitted.clear(partition.name)

    def _begin_reading(
        self, partition: Partition, cursor: Cursor | None, run: Run
    ) -> Iterator[Batch | RecordUnreadable]:
        """Begin a reading of a partition. Skip known sections if equal records always produce equal entries.

        Do not skip sections with a contract or groups, which examine every record, or with a mapping that uses facts.
        """
        can_compare = partition.snapshot and self.maps_as_read and not self._uses_facts
        if can_compare and self._sections is not None:
            return self._sections.read_sections(partition, cursor, run.load_sections)
        return self.connector.read(partition, cursor)

    def _needs_whole(self, batch: Batch, state: PartitionState, *, is_held: bool) -> bool:
        """Return True if the batch lacks records that must be mapped, or does not show which records must be mapped."""
        if batch.partial:
            return is_held  # the batch lacks the records that the held run would have changed
        # If another partition has changed entries, or the mapping uses facts, equal content does not prove equal entries.
        return batch.unchanged and (not state.current or self._uses_facts)
