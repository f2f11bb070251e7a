"""One pipeline's reading: every partition that has something new goes through the difference and the mapping to the mirror."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, moment
from ingestd.core.errors import MirrorError, SettleLater, SourceBroken, SourceUnavailable
from ingestd.core.mapping import Mapping
from ingestd.core.record import Partition
from ingestd.intake.notice import Failures, OperatorNotice
from ingestd.intake.run import Run, checked_batches
from ingestd.mirror.port import Intake, PartitionState, RunSummary
from ingestd.sdk import Connector, Holds, Notices
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import (
    ContentKnown,
    PartitionParked,
    PartitionRead,
    PartitionReadAgain,
    PartitionSettled,
    PartitionUnchanged,
    RecordsParked,
    SettlingFailed,
    SourceStopped,
)

_NOTICES = 5
"""So many different reasons why partitions can't be acknowledged are given in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """One pass over a source.

    ``read``: the runs of the partitions that had something. ``away``: why something could not be reached (empty: nothing);
    it is worth trying again soon. ``broken``: why the source can't be used as configured (empty: it can). ``parked``:
    partitions that can't be read as configured, each with the reason; they are among what is rejected. ``began``: seconds
    since the epoch. ``complete``: every partition was read to its end or is as it was read. ``whole``: there is one, and all are
    snapshots with ``deletes: remove``, so that the source names all that its entries may hold.
    """

    pipeline: str
    read: tuple[RunSummary, ...] = ()
    away: str = ""
    broken: str = ""
    parked: tuple[str, ...] = ()
    began: float = 0.0
    complete: bool = False
    whole: bool = False


@dataclass(slots=True)
class _ReadPass:
    read: list[RunSummary] = field(default_factory=list)
    named: list[Partition] = field(default_factory=list)
    parked: dict[str, str] = field(default_factory=dict)
    away: str = ""


class Reader:
    """Reads one source. All methods block and belong to one thread, except `stop` and `again`."""

    def __init__(
        self,
        *,
        pipeline: str,
        connector: Connector,
        mapping: Mapping,
        sink: SinkAddress,
        mirror: Intake,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
        now: Now = time.time,
        on_pass: Callable[[PassReport], None] = lambda _: None,
    ) -> None:
        self.pipeline = pipeline
        self.connector = connector
        self.sink = sink
        self._mapping = mapping
        self._mirror = mirror
        self._emit = emit
        self._clock = clock
        self._now = now
        self._on_pass = on_pass
        self._stopped = threading.Event()
        self._again = threading.Event()
        self._last_stop = ""
        self._sha256 = ""
        now = connector.context.now
        self._unsettled, self._not_set_aside, self._failing, self._away = (Failures(now) for _ in range(4))

    def stop(self) -> None:
        """Let the pass under way end at the next batch; what was committed stays, the rest is read after the next start."""
        self._stopped.set()
        self.connector.interrupt()

    def again(self) -> None:
        """Records are to be mapped again: the next pass takes nothing for granted that the connector remembers."""
        self._again.set()

    def read_pass(self) -> PassReport:
        """Read every partition once. A source's failure is told in the report, never raised.

        Raises:
            MirrorError: the state file failed; what was committed stays.
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
            self._tell_stopped(broken)
        else:
            self._last_stop = ""
            # A partition that was not put aside is listed again until it is, unless it is gone.
            for failing in (self._failing, self._not_set_aside):
                failing.keep_only(found.parked)
        self._away.keep_only({found.away})
        if found.away:
            self._away.record(found.away, found.away)
        failed = bool(found.away or broken or found.parked) or self._stopped.is_set()
        return PassReport(
            pipeline=self.pipeline,
            read=tuple(found.read),
            away=found.away,
            broken=broken,
            parked=tuple(f"{name}: {sentence}" for name, sentence in found.parked.items()),
            began=began,
            complete=not failed and self.connector.waiting() is None,
            whole=bool(found.named) and all(one.snapshot and one.deletes == "remove" for one in found.named),
        )

    def _read_all(self, found: _ReadPass) -> None:
        for partition in self._considered():
            if self._stopped.is_set():
                break
            found.named.append(partition)
            try:
                summary = self._read_partition(partition)
            except SourceUnavailable as error:
                found.away = found.away or str(error)
            except SourceBroken as error:
                found.parked[partition.name] = str(error)
                self._park(partition, str(error))
            else:
                if summary is not None:
                    found.read.append(summary)

    def acknowledge_settled(self) -> int:
        """Tell the connector of each partition that is settled; how many it took note of."""
        told = 0
        settled = self._mirror.settled_partitions(self.pipeline)
        self._unsettled.keep_only({name for _, name, _ in settled})
        for identity, name, cursor in settled:
            settlement = self._mirror.settlement(identity)
            try:
                self.connector.settled(Partition(name=name), cursor, settlement)
                gone = isinstance(self.connector, Holds) and not self.connector.holds(name)
            except SettleLater:
                continue
            except MirrorError:
                raise
            except Exception as error:  # noqa: BLE001 - a plug-in's failure to move one file must not stop the others
                self._tell_unsettled(self._unsettled, name, error)
                continue
            self._unsettled.clear(name)
            self._mirror.acknowledge(identity, cursor, gone=gone)
            self._emit(PartitionSettled(pipeline=self.pipeline, partition=name))
            told += 1
        return told

    def notices(self) -> list[OperatorNotice]:
        """What an operator should know now. From any thread."""
        reasons = {**self._away.by_sentence(), **self._unsettled.by_sentence(), **self._not_set_aside.by_sentence()}
        first = list(reasons.items())[:_NOTICES]
        known = [OperatorNotice(pipeline=self.pipeline, sentence=sentence, since=since) for sentence, since in first]
        if len(reasons) > _NOTICES:
            more = f"{len(reasons) - _NOTICES} more things are in the way of its files; 'ingestd why FILE' says what."
            known.append(OperatorNotice(pipeline=self.pipeline, sentence=more))
        if isinstance(self.connector, Notices):
            known += [
                OperatorNotice(pipeline=self.pipeline, sentence=sentence) for sentence in self.connector.notices()
            ]
        return known

    def unsettled(self, partition: str) -> OperatorNotice | None:
        """Why the source can't acknowledge a partition, such as a file that can't be moved; None: it can. From any thread."""
        known = self._unsettled.of(partition) or self._not_set_aside.of(partition)
        return OperatorNotice(pipeline=self.pipeline, sentence=known[0], since=known[1]) if known is not None else None

    def _prune(self) -> None:
        """Forget what is no longer needed, a little at each pass that brought something."""
        if isinstance(self.connector, Holds):
            for identity, name in self._mirror.old_partitions(self.pipeline):
                try:
                    gone = not self.connector.holds(name)
                except SourceUnavailable:
                    break  # a source that is away says nothing about its partitions
                except Exception as error:  # noqa: BLE001 - a plug-in's failure to look at one file must not stop the others
                    self._tell_unsettled(self._unsettled, name, error)
                    continue
                if gone:
                    self._mirror.note_gone(identity)
        self._mirror.prune()

    def _considered(self) -> Iterable[Partition]:
        if self._again.is_set():
            self._again.clear()
            self.connector.again()
        return self.connector.partitions()

    def _read_partition(self, partition: Partition) -> RunSummary | None:
        """Read one partition; again and whole where the differences could not decide. None: it had nothing to read."""
        state = self._mirror.open_partition(self.pipeline, partition.name, self.sink, self._mapping.digest)
        known_before = state.cursor is not None
        summary = first = self._read(partition, state, whole=False)
        if summary is not None and summary.collided:
            self._emit(PartitionReadAgain(pipeline=self.pipeline, partition=partition.name))
            state = self._mirror.open_partition(self.pipeline, partition.name, self.sink, self._mapping.digest)
            summary = self._read(partition, state, whole=True)
        if first is not None and summary is not None:
            self._tell_known(partition, first.id, itself=known_before)
        return summary

    def _tell_known(self, partition: Partition, run: int, *, itself: bool) -> None:
        """Whether somebody drops the same content once more, which is often a mistake and never does harm."""
        known = self._mirror.known_content(run, self._sha256) if self._sha256 else None
        if known is None or (known[0] == partition.name and not itself):
            return
        name, at = known
        whose = "the content it had" if name == partition.name else f"the content of {name}, which was read"
        sentence = f"{partition.name} has {whose} {moment(at)}."
        self._emit(ContentKnown(pipeline=self.pipeline, partition=partition.name, sentence=sentence))

    def _read(self, partition: Partition, state: PartitionState, *, whole: bool) -> RunSummary | None:
        run = Run(self._mirror, self._mapping, partition, state, whole=whole)
        started = self._clock()
        summary: RunSummary | None = None
        try:
            for batch in checked_batches(self.connector.read(partition, None if whole else state.cursor)):
                if batch.unchanged and (not state.current or self._mapping.facts):
                    # Somebody else has changed entries since, or the mapping uses the file's facts: content alone is no answer.
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
            self._tell(partition, summary, run.first_reject, self._clock() - started)
        return summary

    def _park(self, partition: Partition, reason: str) -> None:
        if self._failing.record(partition.name, reason):
            self._emit(PartitionParked(pipeline=self.pipeline, partition=partition.name, sentence=reason))
        try:
            self.connector.failed(partition, reason)
        except Exception as error:  # noqa: BLE001 - as when a partition is settled
            self._tell_unsettled(self._not_set_aside, partition.name, error)
        else:
            self._not_set_aside.clear(partition.name)

    def _tell_unsettled(self, failures: Failures, name: str, error: Exception) -> None:
        """Once for each reason: what could not be moved is tried again and again."""
        sentence = str(error) or type(error).__name__
        if failures.record(name, sentence):
            self._emit(SettlingFailed(pipeline=self.pipeline, partition=name, sentence=sentence))

    def _tell_stopped(self, sentence: str) -> None:
        """Once for each reason: the source is looked at again and again, its operator should not have to read it as often."""
        if sentence != self._last_stop:
            self._emit(SourceStopped(pipeline=self.pipeline, sentence=sentence))
        self._last_stop = sentence

    def _tell(self, partition: Partition, summary: RunSummary, first_reject: str, seconds: float) -> None:
        seconds = round(seconds, 3)
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
            sentence = first_reject or "the mirror tells why"
            self._emit(
                RecordsParked(
                    pipeline=self.pipeline, partition=partition.name, records=summary.rejected, sentence=sentence
                )
            )
