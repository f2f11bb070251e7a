"""Deletion of old rejections, by age and number as configured."""

from __future__ import annotations

from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.process.change_signal import ChangeSignal
from ingestd.settings.model import RejectedSettings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.delivery import EntriesRejected
from ingestd.telemetry.catalogue.intake import PartitionRejected, RecordsRejected
from ingestd.telemetry.catalogue.rejected import RejectionsForgotten

_DAY_SECONDS = 86_400.0
_AGE_CHECK_SECONDS = 3_600.0
"""The interval of the check by age. The check by number follows each new rejection."""


class RejectedRetention:
    """Deletes rejections beyond the configured limits."""

    def __init__(self, settings: RejectedSettings, *, rejected: RejectedStore, emit: Emit) -> None:
        self._settings = settings
        self._rejected = rejected
        self._emit = emit
        self._rejections = ChangeSignal()

    def use(self, settings: RejectedSettings) -> None:
        """Apply other limits from now on."""
        self._settings = settings
        self._rejections.notify()

    def note_event(self, event: Event) -> None:
        """Request a check after new rejections. Thread-safe."""
        if isinstance(event, RecordsRejected | EntriesRejected | PartitionRejected):
            self._rejections.notify()

    async def apply(self) -> int:
        """Delete the rejections beyond the limits. Return the number of deleted rejections."""
        days, rows = self._settings.keep_days, self._settings.keep_rows
        if days is None and rows is None:
            return 0
        seconds = None if days is None else days * _DAY_SECONDS
        count = await self._rejected.bound(keep_seconds=seconds, keep_rows=rows)
        if count:
            self._emit(RejectionsForgotten(rejections=count, keep_days=days, keep_rows=rows))
        return count

    async def run(self) -> None:
        """Apply the limits until cancelled."""
        while True:
            known = self._rejections.generation
            await self.apply()
            interval = _AGE_CHECK_SECONDS if self._settings.keep_days is not None else None
            await self._rejections.wait_past(known, seconds=interval)
