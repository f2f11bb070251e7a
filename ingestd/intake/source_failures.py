"""The repeated failures of one source, and the notices about them."""

from __future__ import annotations

from ingestd.intake.connector_reports import connector_notices
from ingestd.intake.notice import Failures, NoticeState, OperatorNotice
from ingestd.sdk import Connector, Holds
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import AcknowledgementFailed, SourceStopped

_NOTICES = 5
"""Maximum number of different reasons that are reported in full; further reasons are only counted."""


class SourceFailures:
    """Why a source or its partitions can't be used. `notices` and `of_partition` are thread-safe.

    Failures of the source: ``away``: it is not available; ``stops``: it can't be used as configured. Failures of partitions:
    ``unreadable``; ``unmoved`` after a rejection; ``unacknowledged``; ``uncommitted``: the connector could not handle a commit.
    It is unknown whether the source still has ``unchecked`` partitions (rejected) and ``unpruned`` partitions (read long ago).
    """

    def __init__(self, pipeline: str, connector: Connector, emit: Emit) -> None:
        self._pipeline = pipeline
        self._connector = connector
        self._emit = emit
        now = connector.context.now
        self.away, self.stops = Failures(now), Failures(now)
        self.unreadable, self.unmoved = Failures(now), Failures(now)
        self.unacknowledged, self.uncommitted = Failures(now), Failures(now)
        self.unchecked, self.unpruned = Failures(now), Failures(now)

    def report(self, failures: Failures, name: str, error: Exception) -> None:
        """Record a failure of the connector, and log it once for each reason, because it is retried often."""
        sentence = str(error) or type(error).__name__
        if failures.record(name, sentence):
            self._emit(AcknowledgementFailed(pipeline=self._pipeline, partition=name, sentence=sentence))

    def report_stopped(self, sentence: str) -> None:
        """Log a broken source once for each reason, because it is retried often."""
        if self.stops.get(sentence) is None:
            self._emit(SourceStopped(pipeline=self._pipeline, sentence=sentence))

    def notices(self) -> list[OperatorNotice]:
        """Return the notices for the operator. Thread-safe."""
        # A table that can't be read stops the source; a file that can't be read is only rejected.
        stops = (self.stops,) if isinstance(self._connector, Holds) else (self.stops, self.unreadable)
        unfinished = (self.unacknowledged, self.uncommitted, self.unmoved, self.unchecked, self.unpruned)
        groups: tuple[tuple[NoticeState, tuple[Failures, ...]], ...] = (
            ("unavailable", (self.away,)), ("failed", stops), ("attention", unfinished),
        )  # fmt: skip
        reasons: dict[str, OperatorNotice] = {}
        for state, groups_of_state in groups:
            for sentence, since in (found for each in groups_of_state for found in each.by_sentence().items()):
                notice = OperatorNotice(pipeline=self._pipeline, sentence=sentence, since=since, state=state)
                reasons.setdefault(sentence, notice)
        known = list(reasons.values())[:_NOTICES]
        if len(reasons) > _NOTICES:
            more = f"{len(reasons) - _NOTICES} more reasons block its files; 'ingestd why FILE' reports the reason of a file."
            known.append(OperatorNotice(pipeline=self._pipeline, sentence=more, state="attention"))
        return known + connector_notices(self._pipeline, self._connector)

    def of_partition(self, partition: str) -> OperatorNotice | None:
        """Return why the connector can't acknowledge a partition, such as an unmovable file, or None. Thread-safe."""
        known = self.unacknowledged.get(partition) or self.unmoved.get(partition)
        return OperatorNotice(pipeline=self._pipeline, sentence=known[0], since=known[1]) if known is not None else None
