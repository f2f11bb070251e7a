"""What became of a partition, for who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ingestd.core.record import Cursor
from ingestd.mirror.port import RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A partition as the mirror knows it. Times are seconds since the epoch.

    ``cursor``: of the last reading to the end. ``reading``, ``read_at``, ``facts``: the last reading that brought content, None
    and 0 where there was none (or it is forgotten). ``same_as``: a partition of the pipeline that was read before with the same
    content; empty: none. ``again_at``: when it was last found unchanged since; 0: never. ``failure``, ``failed_at``: why its
    last reading did not come to its end; empty: it did. ``pending`` and ``rejected`` count what of it is not delivered.
    """

    pipeline: str
    name: str
    cursor: Cursor | None
    reading: RunSummary | None
    read_at: float
    facts: Mapping[str, str]
    same_as: str
    again_at: float
    failure: str
    failed_at: float
    pending: int
    rejected: int


class HistoryReader(Protocol):
    """Can look partitions up."""

    def history(self, pipeline: str, partition: str) -> History | None:
        """None where the pipeline never had such a partition."""
