"""The acknowledgement of partitions with only delivered and rejected entries."""

from __future__ import annotations

from collections.abc import Sequence

from ingestd.core.errors import AcknowledgeLater, MirrorError
from ingestd.core.record import Acknowledgement, Cursor, Partition
from ingestd.intake.source_failures import SourceFailures
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.sdk import AcknowledgesTogether, Connector, Holds
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import AcknowledgementFailed, PartitionAcknowledged

_TOGETHER = 100
"""Maximum number of partitions in one notification of a connector."""


class PartitionAcknowledger:
    """Notifies the connector of one pipeline of acknowledged partitions; adds to ``failures`` why it can't acknowledge them."""

    def __init__(
        self,
        pipeline: str,
        connector: Connector,
        mirror: IntakeStore,
        *,
        emit: Emit,
        failures: SourceFailures,
    ) -> None:
        self._pipeline = pipeline
        self._connector = connector
        # Protocols are checked once, because the check takes longer than other steps of a small file.
        self._together = connector if isinstance(connector, AcknowledgesTogether) else None
        self._holder = connector if isinstance(connector, Holds) else None
        self._mirror = mirror
        self._emit = emit
        self._failures = failures

    def acknowledge(self) -> int:
        """Notify the connector of each acknowledged partition; return the number of successful notifications.

        Raises:
            MirrorError: the state file failed.
        """
        at_once = self._connector.confirms_delivery
        acknowledged = self._mirror.acknowledged_partitions(self._pipeline, at_once=at_once)
        self._failures.unacknowledged.keep_only({partition.name for _, partition, _ in acknowledged})
        size = _TOGETHER if self._together is not None else 1
        return sum(
            self._acknowledge_some(acknowledged[start : start + size]) for start in range(0, len(acknowledged), size)
        )

    def _acknowledge_some(self, acknowledged: Sequence[tuple[int, Partition, Cursor]]) -> int:
        """Notify the connector of some partitions, and store in one transaction which partitions it has acknowledged."""
        with self._mirror.batch(self._pipeline):
            acknowledgements = [self._mirror.acknowledgement(identity) for identity, _, _ in acknowledged]
        notified = [
            (partition, cursor, acknowledgement)
            for (_, partition, cursor), acknowledgement in zip(acknowledged, acknowledgements, strict=True)
        ]
        done: list[tuple[int, str, Cursor, bool]] = []
        for (identity, partition, cursor), failure in zip(acknowledged, self._notify(notified), strict=True):
            name = partition.name
            if isinstance(failure, MirrorError):
                raise failure
            gone, problem = False, failure
            if failure is None and self._holder is not None:
                try:
                    gone = not self._holder.holds(name)
                except Exception as error:  # noqa: BLE001 - a plug-in's failure to look at one file must not stop other partitions
                    problem = error
            if problem is None:
                done.append((identity, name, cursor, gone))
            elif not isinstance(problem, AcknowledgeLater):
                self._failures.report(self._failures.unacknowledged, name, problem)
        if done:
            with self._mirror.batch(self._pipeline):
                for identity, _, cursor, gone in done:
                    self._mirror.acknowledge(identity, cursor, gone=gone)
        for _, name, _, _ in done:
            self._failures.unacknowledged.clear(name)
            self._emit(PartitionAcknowledged(pipeline=self._pipeline, partition=name))
        return len(done)

    def _notify(self, notified: Sequence[tuple[Partition, Cursor, Acknowledgement]]) -> Sequence[Exception | None]:
        """Notify the connector of acknowledged partitions; return its exception or None for each."""
        if len(notified) > 1 and self._together is not None:
            try:
                return self._together.acknowledge_together(notified)
            except MirrorError:
                raise
            except Exception as error:  # noqa: BLE001 - single calls then show which partition causes the error
                sentence = (
                    f"{len(notified)} partitions are acknowledged one by one: {str(error) or type(error).__name__}"
                )
                self._emit(
                    AcknowledgementFailed(pipeline=self._pipeline, partition=notified[0][0].name, sentence=sentence)
                )
        return [self._notify_one(*one) for one in notified]

    def _notify_one(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> Exception | None:
        try:
            self._connector.acknowledge(partition, cursor, acknowledgement)
        except Exception as error:  # noqa: BLE001 - returned to the caller
            return error
        return None
