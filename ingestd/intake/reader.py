"""Reads the source of one pipeline: compares, maps and stores each partition with new content."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, moment
from ingestd.core.contract import Contract, ContractCheck
from ingestd.core.errors import MirrorError, SettleLater, SourceBroken, SourceUnavailable
from ingestd.core.groups import Aggregation
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import Mapping
from ingestd.core.record import Batch, Partition
from ingestd.intake.difference import PARTS
from ingestd.intake.entry_sorter import EntrySorter
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.lookup_files import LookupFiles
from ingestd.intake.notice import Failures, OperatorNotice
from ingestd.intake.run import Run, checked_batches
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import Intake, PartitionState, RunSummary
from ingestd.sdk import Backfills, Connector, Holds, Notices
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import (
    ContentKnown,
    PartitionParked,
    PartitionRead,
    PartitionReadAgain,
    PartitionSettled,
    PartitionUnchanged,
    RecordsParked,
    RunHeld,
    RunReleased,
    SettlingFailed,
    SourceStopped,
)

_NOTICES = 5
"""Maximum number of different reasons that are reported in full; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """The result of one pass over a source.

    ``read``: the runs of the partitions with something to read. ``away``: why a partition or the source is unavailable now;
    empty if all are available. ``broken``: why the source can't be used as configured; empty if it can. ``rejected``: partitions
    that can't be read as configured, each with the reason. ``began``: when the pass began, in seconds since the epoch.
    ``complete``: every partition was read to its end or is unchanged. ``whole``: the source has partitions, and all of them are
    snapshots with ``deletes: remove``, so it names all its entries. ``held``: a partition has a held or discarded run.
    """

    pipeline: str
    read: tuple[RunSummary, ...] = ()
    away: str = ""
    broken: str = ""
    rejected: tuple[str, ...] = ()
    began: float = 0.0
    complete: bool = False
    whole: bool = False
    held: bool = False


@dataclass(slots=True)
class _ReadPass:
    read: list[RunSummary] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    away: str = ""
    held: bool = False


class Reader:
    """Reads one source. All methods block and belong to one thread, except the thread-safe ones.

    Thread-safe: `stop`, `remap`, `columns_of`, `notices` and `unacknowledged`. ``clock``: monotonic seconds;
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
        mirror: Intake,
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
        self._stopped = threading.Event()
        self._remap = threading.Event()
        self._stop_reason = ""
        self._sha256 = ""
        now = connector.context.now
        self._unacknowledged, self._unmoved, self._unreadable, self._away = (Failures(now) for _ in range(4))
        """Why partitions are not acknowledged, not moved after a rejection, not readable, or not available."""

    @property
    def _digest(self) -> str:
        """The digest of groups, mapping, tables and contract: partitions that were read with another one are read again."""
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
        self.connector.interrupt()

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
        report = self._read_partitions(self._now())
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
            found.away = str(error)
        except SourceBroken as error:
            broken = str(error)
            self._report_stopped(broken)
        else:
            self._stop_reason = ""
            # The connector lists a rejected partition again until it has moved it.
            for failures in (self._unreadable, self._unmoved):
                failures.keep_only(found.rejected)
        self._away.keep_only({found.away})
        if found.away:
            self._away.record(found.away, found.away)
        failed = bool(found.away or broken or found.rejected) or self._stopped.is_set()
        return PassReport(
            pipeline=self.pipeline,
            read=tuple(found.read),
            away=found.away,
            broken=broken,
            rejected=tuple(f"{name}: {sentence}" for name, sentence in found.rejected.items()),
            began=began,
            complete=not failed and not found.held and self.connector.waiting() is None,
            held=found.held,
            whole=bool(found.partitions) and all(one.snapshot and one.deletes == "remove" for one in found.partitions),
        )

    def _read_lookups(self) -> None:
        """Use the current tables of the lookups. Another table means another mapping: every record is mapped again."""
        tables = self.lookups.read() if self.lookups is not None else None
        if tables is not None:
            self._mapping = self._mapping.with_tables(tables)
            if self._has_tables:
                self._remap.set()
            self._has_tables = True

    def _read_all(self, found: _ReadPass) -> None:
        self._read_lookups()
        for partition in self._list_partitions():
            if self._stopped.is_set():
                break
            found.partitions.append(partition)
            try:
                summary = self._read_partition(partition, found)
            except SourceUnavailable as error:
                found.away = found.away or str(error)
            except SourceBroken as error:
                found.rejected[partition.name] = str(error)
                self._reject(partition, str(error))
            else:
                if summary is not None:
                    found.read.append(summary)

    def acknowledge_partitions(self) -> int:
        """Notify the connector of each acknowledged partition; return the number of successful notifications.

        Raises:
            MirrorError: the state file failed.
        """
        count = 0
        acknowledged = self._mirror.acknowledged_partitions(self.pipeline)
        self._unacknowledged.keep_only({name for _, name, _ in acknowledged})
        for identity, name, cursor in acknowledged:
            settlement = self._mirror.settlement(identity)
            try:
                self.connector.settled(Partition(name=name), cursor, settlement)
                gone = isinstance(self.connector, Holds) and not self.connector.holds(name)
            except SettleLater:
                continue
            except MirrorError:
                raise
            except Exception as error:  # noqa: BLE001 - a plug-in's failure to move one file must not stop the others
                self._report_unacknowledged(self._unacknowledged, name, error)
                continue
            self._unacknowledged.clear(name)
            self._mirror.acknowledge(identity, cursor, gone=gone)
            self._emit(PartitionSettled(pipeline=self.pipeline, partition=name))
            count += 1
        return count

    def notices(self) -> list[OperatorNotice]:
        """Return the notices for the operator. Thread-safe."""
        failures = (self._away, self._unacknowledged, self._unmoved)
        reasons = {sentence: since for each in failures for sentence, since in each.by_sentence().items()}
        first = list(reasons.items())[:_NOTICES]
        known = [OperatorNotice(pipeline=self.pipeline, sentence=sentence, since=since) for sentence, since in first]
        if len(reasons) > _NOTICES:
            more = f"{len(reasons) - _NOTICES} more reasons block its files; 'ingestd why FILE' reports the reason of a file."
            known.append(OperatorNotice(pipeline=self.pipeline, sentence=more))
        if isinstance(self.connector, Notices):
            known += [
                OperatorNotice(pipeline=self.pipeline, sentence=sentence) for sentence in self.connector.notices()
            ]
        return known

    def unacknowledged(self, partition: str) -> OperatorNotice | None:
        """Return why the connector can't acknowledge a partition, such as an unmovable file, or None. Thread-safe."""
        known = self._unacknowledged.get(partition) or self._unmoved.get(partition)
        return OperatorNotice(pipeline=self.pipeline, sentence=known[0], since=known[1]) if known is not None else None

    def _prune(self) -> None:
        """Delete rows that are no longer needed, a few at each pass with new content."""
        if isinstance(self.connector, Holds):
            for identity, name in self._mirror.old_partitions(self.pipeline):
                try:
                    gone = not self.connector.holds(name)
                except SourceUnavailable:
                    break  # an unavailable source does not show whether it has a partition
                except Exception as error:  # noqa: BLE001 - a plug-in's failure to look at one file must not stop the others
                    self._report_unacknowledged(self._unacknowledged, name, error)
                    continue
                if gone:
                    self._mirror.note_gone(identity)
        self._mirror.prune()

    def _list_partitions(self) -> Iterable[Partition]:
        if self._remap.is_set():
            self._remap.clear()
            self.connector.again()
        return self.connector.partitions()

    def _read_partition(self, partition: Partition, found: _ReadPass) -> RunSummary | None:
        """Read one partition and return the summary, or None if there was nothing to read.

        If the differences do not show which record owns a key, the whole partition is read again.
        """
        state = self._mirror.open_partition(self.pipeline, partition.name, self.sink, self._digest)
        was_read_before = state.cursor is not None
        summary = first = self._read(partition, state, whole=False)
        if summary is not None and summary.collided:
            self._emit(PartitionReadAgain(pipeline=self.pipeline, partition=partition.name))
            state = self._mirror.open_partition(self.pipeline, partition.name, self.sink, self._digest)
            summary = self._read(partition, state, whole=True)
        is_withheld = state.withheld is not None if summary is None else summary.withheld is not None
        found.held = found.held or is_withheld
        if first is not None and summary is not None:
            self._report_known_content(partition, first.id, is_reread=was_read_before)
        return summary

    def _report_known_content(self, partition: Partition, run: int, *, is_reread: bool) -> None:
        """Report content that was read before, which is often a mistake but harmless.

        ``is_reread``: the partition was read before, so its own earlier content is reported, too.
        """
        known = self._mirror.known_content(run, self._sha256) if self._sha256 else None
        if known is None or (known[0] == partition.name and not is_reread):
            return
        name, at = known
        content = "the content it had" if name == partition.name else f"the content of {name}, which was read"
        sentence = f"{partition.name} has {content} {moment(at)}."
        self._emit(ContentKnown(pipeline=self.pipeline, partition=partition.name, sentence=sentence))

    def _read(self, partition: Partition, state: PartitionState, *, whole: bool) -> RunSummary | None:
        if isinstance(self.connector, Backfills):
            self.connector.pause_backfill(state.withheld is not None)
        with ExitStack() as files:
            sorter = files.enter_context(EntrySorter(self._folder))
            hashes = files.enter_context(closing(SpillFile(self._folder, parts=PARTS, content="row hashes")))
            groups = files.enter_context(GroupStage(self._groups, self._folder)) if self._groups is not None else None
            return self._read_batches(partition, state, whole=whole, groups=groups, sorter=sorter, hashes=hashes)

    def _read_batches(
        self,
        partition: Partition,
        state: PartitionState,
        *,
        whole: bool,
        groups: GroupStage | None,
        sorter: EntrySorter,
        hashes: SpillFile,
    ) -> RunSummary | None:
        contract = ContractCheck(self._contract) if self._contract is not None else None
        guard = self._guard if partition.snapshot and self._guard.covers(partition.deletes) else None
        can_hold = guard is not None or (partition.snapshot and contract is not None and contract.contract.can_hold)
        withheld = state.withheld if can_hold and not whole else None
        run = Run(
            self._mirror, self._mapping, partition, state, whole=whole, contract=contract, guard=guard, groups=groups,
            sorter=sorter, hashes=hashes, clock=self._clock,
        )  # fmt: skip
        started = self._clock()
        summary: RunSummary | None = None
        try:
            cursor = None if whole else withheld or state.cursor
            # Closed at once, because the traceback of an exception would keep the source's file open.
            with closing(checked_batches(self.connector.read(partition, cursor))) as batches:
                for batch in batches:
                    if batch.unchanged and withheld is not None:
                        return None  # the run with this content is held or was discarded
                    if self._needs_whole(batch, state, is_held=withheld is not None):
                        batches.close()
                        return self._read(partition, state, whole=True)
                    self._sha256 = batch.facts.get("file.sha256", "")
                    summary = run.take(batch)
                    if self._stopped.is_set():
                        break
        except MirrorError:
            raise
        except SourceUnavailable as error:
            run.fail(str(error), broken=False)
            raise
        except SourceBroken as error:
            run.fail(str(error), broken=True)
            raise
        if summary is None:
            run.fail("the reading was stopped before the partition's end", broken=False)
            return None
        if not summary.collided:
            self._report(partition, summary, run.first_reject, self._clock() - started)
        return summary

    def _needs_whole(self, batch: Batch, state: PartitionState, *, is_held: bool) -> bool:
        """Return True if the batch does not contain, or does not show, what must be mapped."""
        if batch.partial:
            return is_held  # it lacks what the held run would have changed
        # Another partition has changed entries since, or the mapping uses facts: the content alone proves nothing.
        return batch.unchanged and (not state.current or self._uses_facts)

    def _reject(self, partition: Partition, reason: str) -> None:
        if self._unreadable.record(partition.name, reason):
            self._emit(PartitionParked(pipeline=self.pipeline, partition=partition.name, sentence=reason))
        try:
            self.connector.failed(partition, reason)
        except Exception as error:  # noqa: BLE001 - as in acknowledge_partitions
            self._report_unacknowledged(self._unmoved, partition.name, error)
        else:
            self._unmoved.clear(partition.name)

    def _report_unacknowledged(self, failures: Failures, name: str, error: Exception) -> None:
        """Record a failed acknowledgement, and log it once for each reason, because it is retried often."""
        sentence = str(error) or type(error).__name__
        if failures.record(name, sentence):
            self._emit(SettlingFailed(pipeline=self.pipeline, partition=name, sentence=sentence))

    def _report_stopped(self, sentence: str) -> None:
        """Log a broken source once for each reason, because it is retried often."""
        if sentence != self._stop_reason:
            self._emit(SourceStopped(pipeline=self.pipeline, sentence=sentence))
        self._stop_reason = sentence

    def _report(self, partition: Partition, summary: RunSummary, first_reject: str, seconds: float) -> None:
        seconds = round(seconds, 3)
        held = summary.withheld
        if held is not None and held.run == summary.id:
            sentence = " ".join(
                (*held.reasons, f"'ingestd approve {held.run}' delivers it; 'ingestd discard {held.run}' does not.")
            )
            self._emit(RunHeld(pipeline=self.pipeline, partition=partition.name, run=held.run, sentence=sentence))
        if held is not None:
            return
        if summary.replaces is not None:
            self._emit(
                RunReleased(
                    pipeline=self.pipeline, partition=partition.name, run=summary.replaces, decision="replaced", by=""
                )
            )
        if not summary.changed:
            self._emit(
                PartitionUnchanged(
                    pipeline=self.pipeline, partition=partition.name, records=summary.records, seconds=seconds
                )
            )
            return
        self._emit(
            PartitionRead(
                pipeline=self.pipeline,
                partition=partition.name,
                records=summary.records,
                created=summary.created,
                updated=summary.updated,
                unchanged=summary.unchanged,
                removed=summary.removed,
                rejected=summary.rejected,
                seconds=seconds,
            )
        )
        if summary.rejected:
            sentence = first_reject or "'ingestd rejected list' shows the reasons"
            self._emit(
                RecordsParked(
                    pipeline=self.pipeline, partition=partition.name, records=summary.rejected, sentence=sentence
                )
            )
