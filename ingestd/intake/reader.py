"""One pipeline's reading: every partition that has something new goes through the difference and the mapping to the mirror."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment
from ingestd.core.errors import MirrorError, SettleLater, SourceBroken, SourceUnavailable
from ingestd.core.mapping import Mapping
from ingestd.core.record import Partition
from ingestd.intake.run import Run, guarded
from ingestd.mirror.port import Intake, PartitionState, RunSummary
from ingestd.sdk import Connector
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """One pass over a source.

    ``read``: the runs of the partitions that had something. ``away``: why something could not be reached (empty: nothing);
    it is worth trying again soon. ``broken``: why the source can't be used as configured (empty: it can). ``parked``:
    partitions that can't be read as configured, each with the reason; they are among what is rejected.
    """

    pipeline: str
    read: tuple[RunSummary, ...] = ()
    away: str = ""
    broken: str = ""
    parked: tuple[str, ...] = ()


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
    ) -> None:
        self.pipeline = pipeline
        self.connector = connector
        self._mapping = mapping
        self._sink = sink
        self._mirror = mirror
        self._emit = emit
        self._clock = clock
        self._stopped = threading.Event()
        self._again = threading.Event()
        self._last_stop = ""
        self._sha256 = ""
        self._unsettled: dict[str, str] = {}

    def stop(self) -> None:
        """Let the pass under way end at the next batch; what was committed stays, the rest is read after the next start."""
        self._stopped.set()

    def again(self) -> None:
        """Records are to be mapped again: the next pass takes nothing for granted that the connector remembers."""
        self._again.set()

    def read_pass(self) -> PassReport:
        """Read every partition once. A source's failure is told in the report, never raised.

        Raises:
            MirrorError: the state file failed; what was committed stays.
        """
        read: list[RunSummary] = []
        parked: list[str] = []
        away = broken = ""
        try:
            for partition in self._considered():
                if self._stopped.is_set():
                    break
                try:
                    summary = self._read_partition(partition)
                except SourceUnavailable as error:
                    away = away or str(error)
                except SourceBroken as error:
                    self._emit(PartitionParked(pipeline=self.pipeline, partition=partition.name, sentence=str(error)))
                    parked.append(f"{partition.name}: {error}")
                    self._tell_failed(partition, str(error))
                else:
                    if summary is not None:
                        read.append(summary)
        except SourceUnavailable as error:
            away = str(error)
        except SourceBroken as error:
            broken = str(error)
            self._tell_stopped(broken)
        else:
            self._last_stop = ""
        return PassReport(pipeline=self.pipeline, read=tuple(read), away=away, broken=broken, parked=tuple(parked))

    def acknowledge_settled(self) -> int:
        """Tell the connector of each partition that is settled; how many it took note of."""
        told = 0
        for identity, name, cursor in self._mirror.settled_partitions(self.pipeline):
            settlement = self._mirror.settlement(identity)
            try:
                self.connector.settled(Partition(name=name), cursor, settlement)
            except SettleLater:
                continue
            except MirrorError:
                raise
            except Exception as error:  # noqa: BLE001 - a plug-in's failure to move one file must not stop the others
                self._tell_unsettled(name, error)
                continue
            self._unsettled.pop(name, None)
            self._mirror.acknowledge(identity, cursor)
            self._emit(PartitionSettled(pipeline=self.pipeline, partition=name))
            told += 1
        return told

    def _considered(self) -> Iterable[Partition]:
        if self._again.is_set():
            self._again.clear()
            self.connector.again()
        return self.connector.partitions()

    def _read_partition(self, partition: Partition) -> RunSummary | None:
        """Read one partition; again and whole where the differences could not decide. None: it had nothing to read."""
        state = self._mirror.open_partition(self.pipeline, partition.name, self._sink, self._mapping.digest)
        known_before = state.cursor is not None
        summary = first = self._read(partition, state, whole=False)
        if summary is not None and summary.collided:
            self._emit(PartitionReadAgain(pipeline=self.pipeline, partition=partition.name))
            state = self._mirror.open_partition(self.pipeline, partition.name, self._sink, self._mapping.digest)
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
            for batch in guarded(self.connector.read(partition, None if whole else state.cursor)):
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

    def _tell_failed(self, partition: Partition, reason: str) -> None:
        try:
            self.connector.failed(partition, reason)
        except Exception as error:  # noqa: BLE001 - as when a partition is settled
            self._tell_unsettled(partition.name, error)
        else:
            self._unsettled.pop(partition.name, None)

    def _tell_unsettled(self, name: str, error: Exception) -> None:
        """Once for each reason: what could not be moved is tried again and again."""
        sentence = str(error) or type(error).__name__
        if self._unsettled.get(name) != sentence:
            self._emit(SettlingFailed(pipeline=self.pipeline, partition=name, sentence=sentence))
        self._unsettled[name] = sentence

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
