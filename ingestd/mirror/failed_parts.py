"""Which parts of the daemon failed and wait for their next start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPart:
    """A part that ended with an unforeseen exception. Times are seconds since the epoch.

    ``failures``: how many there were since ``since`` without a recovery; ``retry_at``: when the part starts again.
    """

    part: str
    sentence: str
    failures: int
    since: float
    retry_at: float


class FailedPartKeeper(Protocol):
    """Stores failed parts for `ingestd status`. Methods block; the caller owns a thread for them."""

    def record(self, failed: FailedPart) -> None:
        """Store a failure; ``since`` of an earlier one of the same part is kept."""

    def clear(self, part: str) -> None:
        """Forget a part that has recovered."""

    def clear_all(self) -> None:
        """Forget every part: the daemon starts anew."""


class FailedPartReader(Protocol):
    """Reads what `FailedPartKeeper` stored."""

    def failed_parts(self) -> list[FailedPart]:
        """Every part that failed and has not recovered, by name."""
