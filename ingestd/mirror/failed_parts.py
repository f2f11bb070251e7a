"""Failed parts of the daemon that wait for their restart."""

from __future__ import annotations

from typing import Protocol

import msgspec


class FailedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part that ended with an unexpected exception. Times are seconds since the epoch.

    ``failures``: number of failures since ``since`` without a recovery; ``retry_at``: time of the restart.
    """

    part: str
    sentence: str
    failures: int
    since: float
    retry_at: float


class FailedPartKeeper(Protocol):
    """Stores failed parts for `ingestd status`. Methods block: call them in a thread."""

    def record(self, failed: FailedPart) -> None:
        """Store a failure; keep ``since`` of an earlier failure of the part."""

    def clear(self, part: str) -> None:
        """Delete a part that has recovered."""

    def clear_all(self) -> None:
        """Delete all parts, at a new start of the daemon."""


class FailedPartReader(Protocol):
    """Reads the parts that `FailedPartKeeper` stored."""

    def failed_parts(self) -> list[FailedPart]:
        """Return all failed parts that have not recovered, by name."""
