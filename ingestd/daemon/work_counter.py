"""How much a daemon has read and delivered since its start, for the rates of `ingestd top`."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

import msgspec

from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from ingestd.telemetry.catalogue.intake import PartitionRead


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Records by pipeline and delivered entries by sink. The names of the members are part of `ingestd status --json`."""

    records: Mapping[str, int]
    delivered: Mapping[str, int]


class WorkCounter:
    """Counts the work that events report. Any thread may report one."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._records: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()

    def note_event(self, event: Event) -> None:
        """Count what the event reports."""
        with self._guard:
            match event:
                case PartitionRead():
                    self._records[event.pipeline] += event.records
                case EntriesDelivered():
                    self._delivered[event.sink] += event.entries

    def counts(self) -> WorkCounts:
        """Return the numbers since the start."""
        with self._guard:
            return WorkCounts(records=dict(self._records), delivered=dict(self._delivered))
