"""The report of a lane."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment

LaneStatus: TypeAlias = Literal["idle", "delivering", "backing off", "paused"]


class LaneReport(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a lane. Times are seconds since the epoch.

    ``since``: when the blocker appeared, or without a blocker, when the status began. ``until``: the time of the next attempt
    (backing off, paused). ``sentence``: why the lane is blocked and what to do; empty without a blocker. It stays until an
    entry is delivered.
    """

    sink: SinkAddress
    status: LaneStatus
    since: float
    until: float | None = None
    sentence: str = ""

    def __str__(self) -> str:
        if not self.sentence:
            return f"{self.sink}: {self.status}"
        retry = f", next try {moment(self.until)}" if self.until is not None else ""
        return f"{self.sink}: {self.status} since {moment(self.since)}{retry}: {self.sentence}"
