"""Counts of events since the start of the process, for metrics and pages."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy

import msgspec

from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.delivery import DeliveryDelayed, DeliveryPaused, EntriesDelivered, EntriesRejected
from ingestd.telemetry.catalogue.intake import (
    PartitionRead,
    PartitionRejected,
    PartitionUnchanged,
    RecordsRejected,
    RunHeld,
)
from ingestd.telemetry.request_counts import Durations

RUN_SECONDS = (0.1, 1.0, 10.0, 60.0, 600.0)
"""The upper bounds of the histogram buckets of run durations, in seconds."""


class EventTotals(msgspec.Struct, kw_only=True):
    """Counts by sink (``delivered``, ``refused``, ``retries``) or pipeline; ``runs`` also by result, ``entries`` by change."""

    runs: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    run_durations: dict[str, Durations] = msgspec.field(default_factory=dict)
    records: Counter[str] = msgspec.field(default_factory=Counter)
    records_rejected: Counter[str] = msgspec.field(default_factory=Counter)
    entries: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    delivered: Counter[str] = msgspec.field(default_factory=Counter)
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    retries: Counter[str] = msgspec.field(default_factory=Counter)


PERIODS = 48
PERIOD_SECONDS = 1_800
"""The last 24 hours, in half hours."""


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """The work for a pipeline in each of the last `PERIODS` periods; the current period is last.

    ``records``: records that were read. ``rejected``: records that were rejected. ``entries``: entries that were created,
    updated or removed in the mirror. ``delivered``: entries that any pipeline delivered to the sink. ``hours``: the duration of
    all periods; less than 24 on the first day of the process.
    """

    records: Sequence[int]
    rejected: Sequence[int]
    entries: Sequence[int]
    delivered: Sequence[int]
    hours: float = 24.0


class EventCounts:
    """Counts events. Thread-safe. ``changes`` is notified of each event. ``clock`` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._by_period: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        self.changes = ChangeSignal()
        self._guard = threading.Lock()
        self._counts = EventTotals()

    def read(self) -> EventTotals:
        """Return a copy of the counts."""
        with self._guard:
            return deepcopy(self._counts)

    def activity(self, pipeline: str, sink: str) -> Activity:
        """Return the work for a pipeline and its sink in the last 24 hours, or since the start of the process."""
        now = self._clock()
        with self._guard:
            records, rejected, entries, delivered = (
                self._series(now, *key)
                for key in (("records", pipeline), ("rejected", pipeline), ("entries", pipeline), ("delivered", sink))
            )
        hours = min(now - self._began, PERIODS * PERIOD_SECONDS) / 3_600
        return Activity(records=records, rejected=rejected, entries=entries, delivered=delivered, hours=hours)

    def _series(self, now: float, kind: str, name: str) -> Sequence[int]:
        counts = self._by_period.get((kind, name), Counter())
        period = int(now // PERIOD_SECONDS)
        return [counts[one] for one in range(period - PERIODS + 1, period + 1)]

    def note(self, event: Event) -> None:
        """Count an event."""
        with self._guard:
            self._note(self._counts, event)
            period = int(self._clock() // PERIOD_SECONDS)
            for kind, name, count in _work(event):
                counts = self._by_period[kind, name]
                counts[period] += count
                for past in [one for one in counts if one <= period - PERIODS]:
                    del counts[past]
        self.changes.notify()

    def _note(self, counts: EventTotals, event: Event) -> None:
        match event:
            case EntriesDelivered():
                counts.delivered[event.sink] += event.entries
            case PartitionUnchanged():
                counts.runs[event.pipeline, "unchanged"] += 1
                self._run_ended(counts, event.pipeline, event.records, event.seconds)
            case PartitionRead():
                counts.runs[event.pipeline, "changed"] += 1
                self._run_ended(counts, event.pipeline, event.records, event.seconds)
                for change in ("created", "updated", "removed", "unchanged"):
                    counts.entries[event.pipeline, change] += getattr(event, change)
            case RunHeld():
                counts.runs[event.pipeline, "held"] += 1
            case PartitionRejected():
                counts.runs[event.pipeline, "failed"] += 1
            case RecordsRejected():
                counts.records_rejected[event.pipeline] += event.records
            case EntriesRejected():
                counts.refused[event.sink] += event.entries
            case DeliveryDelayed() | DeliveryPaused():
                counts.retries[event.sink] += 1
            case _:
                pass  # other events are not counted

    def _run_ended(self, counts: EventTotals, pipeline: str, records: int, seconds: float) -> None:
        counts.records[pipeline] += records
        if pipeline not in counts.run_durations:
            counts.run_durations[pipeline] = Durations(RUN_SECONDS)
        counts.run_durations[pipeline].add(seconds)


def _work(event: Event) -> Iterator[tuple[str, str, int]]:
    """Yield what an event adds to the work of the last 24 hours: the kind of work, the pipeline or sink, and the count."""
    match event:
        case EntriesDelivered():
            yield "delivered", event.sink, event.entries
        case PartitionRead():
            yield "records", event.pipeline, event.records
            yield "rejected", event.pipeline, event.rejected
            yield "entries", event.pipeline, event.created + event.updated + event.removed
        case PartitionUnchanged():
            yield "records", event.pipeline, event.records
        case _:
            pass  # other events are no work
