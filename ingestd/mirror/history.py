"""The history of a partition, for `ingestd why`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ingestd.core.record import Cursor
from ingestd.mirror.port import RunSummary


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A partition in the mirror. Times are seconds since the epoch.

    ``cursor``: cursor of the last complete reading. ``reading``, ``read_at``, ``facts``: the last reading with new content, None
    and 0 if there was none or it was pruned. ``same_as``: a partition of the pipeline that had the same content earlier;
    empty: none. ``again_at``: when it was last found unchanged since; 0: never. ``failure``, ``failed_at``: why the
    last reading was incomplete; empty: it was complete. ``pending`` and ``rejected``: numbers of undelivered entries and records.
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


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a partition. Times are seconds since the epoch; ``ended`` None: it runs. ``failure``: empty if complete."""

    partition: str
    started: float
    ended: float | None
    summary: RunSummary
    failure: str


class HeldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a held run would create (``before`` and ``before_type`` None) or change."""

    key: str
    before: str | None
    before_type: str | None
    after: str | None
    after_type: str
