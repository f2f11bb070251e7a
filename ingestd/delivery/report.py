"""What a lane tells about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment

Standing: TypeAlias = Literal["idle", "delivering", "backing off", "paused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReport:
    """How a lane stands.

    ``since``: when the trouble began, or, without trouble, when the lane took this standing. ``until``: when it tries
    again (backing off, paused). ``sentence``: what is wrong and what to do; empty without trouble. It stays until
    something was delivered. Times are seconds since the epoch.
    """

    sink: SinkAddress
    standing: Standing
    since: float
    until: float | None = None
    sentence: str = ""

    def __str__(self) -> str:
        if not self.sentence:
            return f"{self.sink}: {self.standing}"
        again = f", next try {moment(self.until)}" if self.until is not None else ""
        return f"{self.sink}: {self.standing} since {moment(self.since)}{again}: {self.sentence}"
