"""What is rejected is forgotten by age and number, where the configuration says so, and that is announced."""

from __future__ import annotations

import asyncio

from ingestd.mirror.rejections import RejectionKeeper
from ingestd.process.change_signal import ChangeSignal
from ingestd.settings.model import RejectedSettings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.delivery import EntriesParked
from ingestd.telemetry.catalogue.intake import PartitionParked, RecordsParked
from ingestd.telemetry.catalogue.rejected import RejectionsForgotten

_DAY_SECONDS = 86_400.0
_LOOK_SECONDS = 3_600.0
"""How often ages are looked at; numbers are, whenever something was parked."""


class RejectedRetention:
    """Keeps what is rejected within its bounds."""

    def __init__(self, settings: RejectedSettings, *, rejected: RejectionKeeper, emit: Emit) -> None:
        self._settings = settings
        self._rejected = rejected
        self._emit = emit
        self._parked = ChangeSignal()

    def heard(self, event: Event) -> None:
        """Something happened; from any thread."""
        if isinstance(event, RecordsParked | EntriesParked | PartitionParked):
            self._parked.notify()

    async def apply(self) -> int:
        """Forget what is beyond the bounds now; how many."""
        days, rows = self._settings.keep_days, self._settings.keep_rows
        if days is None and rows is None:
            return 0
        seconds = None if days is None else days * _DAY_SECONDS
        count = await self._rejected.bound(keep_seconds=seconds, keep_rows=rows)
        if count:
            self._emit(RejectionsForgotten(rejections=count, keep_days=days, keep_rows=rows))
        return count

    async def run(self) -> None:
        """Until cancelled."""
        if self._settings.keep_days is None and self._settings.keep_rows is None:
            await asyncio.Event().wait()
        look = _LOOK_SECONDS if self._settings.keep_days is not None else None
        while True:
            known = self._parked.generation
            await self.apply()
            await self._parked.wait_past(known, seconds=look)
