"""EventTotals of events since the start of the process, for metrics."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from copy import deepcopy

import msgspec

from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.delivery import DeliveryDelayed, DeliveryPaused, EntriesDelivered, EntriesParked
from ingestd.telemetry.catalogue.intake import (
    PartitionParked,
    PartitionRead,
    PartitionUnchanged,
    RecordsParked,
    RunHeld,
)
from ingestd.telemetry.request_counts import Durations

RUN_SECONDS = (0.1, 1.0, 10.0, 60.0, 600.0)
"""Upper bounds of the classes of run durations."""


class EventTotals(msgspec.Struct, kw_only=True):
    """``runs`` by pipeline and result, ``records`` by pipeline, ``entries`` by pipeline and change, the rest by sink."""

    runs: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    run_durations: dict[str, Durations] = msgspec.field(default_factory=dict)
    records: Counter[str] = msgspec.field(default_factory=Counter)
    records_rejected: Counter[str] = msgspec.field(default_factory=Counter)
    entries: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    delivered: Counter[str] = msgspec.field(default_factory=Counter)
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    retries: Counter[str] = msgspec.field(default_factory=Counter)


THROUGHPUT_MINUTES = 30
"""The number of minutes for which deliveries are kept for each sink."""


class EventCounts:
    """EventTotals events. Thread-safe. ``changes`` is notified of each event. ``clock`` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_minute: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.changes = ChangeSignal()
        self._guard = threading.Lock()
        self._counts = EventTotals()

    def read(self) -> EventTotals:
        """Return a copy of the counts."""
        with self._guard:
            return deepcopy(self._counts)

    def throughput(self, sink: str) -> Sequence[int]:
        """Return the entries that were delivered to a sink in each of the last minutes, the present one last."""
        minute = int(self._clock() // 60)
        with self._guard:
            counts = self._by_minute.get(sink, Counter())
            return [counts[one] for one in range(minute - THROUGHPUT_MINUTES + 1, minute + 1)]

    def note(self, event: Event) -> None:
        """Count an event."""
        with self._guard:
            self._note(self._counts, event)
            if isinstance(event, EntriesDelivered):
                minute = int(self._clock() // 60)
                counts = self._by_minute[event.sink]
                counts[minute] += event.entries
                for past in [one for one in counts if one <= minute - THROUGHPUT_MINUTES]:
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
            case PartitionParked():
                counts.runs[event.pipeline, "failed"] += 1
            case RecordsParked():
                counts.records_rejected[event.pipeline] += event.records
            case EntriesParked():
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
