"""Reports of the mirror for people, in addition to the status: partitions, cursors, former values and failed parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.record import Cursor, Position
from ingestd.mirror.port import RunSummary


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A partition in the mirror. Times are seconds since the epoch.

    ``seen_at``: when the source first named the partition. ``cursor``: cursor of the last complete reading. ``reading``,
    ``read_at``, ``ended_at``, ``facts``: the last reading with new content; None and 0 if there was none or it was pruned.
    ``acknowledged_at``: when the last complete reading was acknowledged to the connector; None: not yet. ``same_as``: a
    partition of the pipeline that had the same content earlier; empty: none. ``again_at``: when a later reading last found the
    content unchanged; 0: never. ``failure``, ``failed_at``: why and when the last reading failed; empty and 0: it was complete.
    ``pending``: number of entries that are not delivered yet. ``rejected``: number of rejections.
    """

    pipeline: str
    name: str
    seen_at: float | None
    cursor: Cursor | None
    reading: RunSummary | None
    read_at: float
    ended_at: float
    acknowledged_at: float | None
    facts: Mapping[str, str]
    same_as: str
    again_at: float
    failure: str
    failed_at: float
    pending: int
    rejected: int


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a partition. Times are seconds since the epoch; ``ended``: None while the reading runs.

    ``failure``: empty if the reading was complete. ``unchanged``: the reading found the content that was read before.
    """

    partition: str
    started: float
    ended: float | None
    summary: RunSummary
    failure: str
    unchanged: bool = False


class HeldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a held run would create (``before`` and ``before_type`` None) or change."""

    key: str
    before: str | None
    before_type: str | None
    after: str | None
    after_type: str


class FailedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the daemon that ended with an unexpected exception. Times are seconds since the epoch.

    ``failures``: number of failures since ``since`` without a recovery; ``retry_at``: time of the restart.
    """

    part: str
    sentence: str
    failures: int
    since: float
    retry_at: float


class PipelinePause(msgspec.Struct, frozen=True, kw_only=True):
    """A paused pipeline: its source is not read, and its ``pending`` entries are not sent.

    ``since``: seconds since the epoch; ``by``: the account that paused it. The names of the members are part of the output of
    `ingestd status --json`.
    """

    pipeline: str
    since: float
    by: str
    pending: int


class StoredCursor(msgspec.Struct, frozen=True, kw_only=True):
    """The cursor of a partition; None: the next reading starts at the beginning.

    ``at``: when the last reading began, in seconds since the epoch; None: never read. ``pending``: number of entries of the
    partition that are not delivered yet. ``rejected``: number of its rejections.
    """

    partition: str
    cursor: Cursor | None
    at: float | None
    pending: int
    rejected: int


Ending: TypeAlias = Literal["replaced", "removed", "approved", "adopted", "overwritten", "rolled_back"]
"""Why an entry no longer has a former value.

replaced: a source has another value · removed: no source has a value · approved: an approved run has another value · adopted:
the service's content was adopted · overwritten: a value that was found in the service was overwritten · rolled_back: a person
restored an earlier value."""

FormerDelivery: TypeAlias = Literal["delivered", "rejected", "sent", "pending", "found"]
"""The delivery of a former value. ``sent``: when the value was replaced or removed, a request with the value had no response
yet. ``pending``: the value was never sent. ``found``: the daemon found the value in the service."""


class FormerValue(msgspec.Struct, frozen=True, kw_only=True):
    """A former value of an entry. It came from the record at ``position`` of ``partition``, read at ``read_at`` by ``run``.

    Times are seconds since the epoch; None if they are not known. ``pipeline`` is empty for a value that was found in the
    service. ``run`` and ``ended_by`` are 0 if there was no run. ``ended_at``: when the value was replaced or removed.
    The names of the members are part of the output of `ingestd trace --json`.
    """

    workspace: str
    sink: str
    value: str | None
    data_type: str
    pipeline: str
    partition: str
    position: Position | None
    run: int
    read_at: float | None
    delivery: FormerDelivery
    delivered_at: float | None
    ended_at: float
    ended_by: int
    ending: Ending
