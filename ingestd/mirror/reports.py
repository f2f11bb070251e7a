"""Reports of the mirror for people: the status, partitions, cursors, origins, former values and failed parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.record import Cursor, Position
from ingestd.mirror.drift import DriftStatus
from ingestd.mirror.port import DeliveryAttempt, LaneBlocker, RunSummary


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


class SinkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a sink for `ingestd status`.

    ``unexplained``: the number of entries that no source explains. ``read``: since the adoption of the sink, each active
    pipeline of the sink was read completely. ``blocker``: the blocker of the sink's lane. ``doubt``: why the mirror may not
    know the content of the sink; empty if there is no doubt.
    """

    address: SinkAddress
    sink_id: str
    entries: int
    pending: int
    rejected: int
    last_attempt: DeliveryAttempt | None
    drift: DriftStatus | None = None
    blocker: LaneBlocker | None = None
    unexplained: int = 0
    read: bool = True
    doubt: str = ""


class SinkBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """The pending entries of a sink. ``oldest_at``: when the oldest pending segment was created; None: nothing is pending.

    If an entry is retried, adopted or changed, its age begins again. Times are seconds since the epoch.
    """

    address: SinkAddress
    pending: int
    oldest_at: float | None


class PartitionNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice about guesses and omissions of a partition's last reading, which began ``at`` (seconds since the epoch)."""

    partition: str
    at: float
    sentence: str


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a pipeline; times are seconds since the epoch.

    ``notices``: the newest notices of the partitions that the source still has, and of the partition that was read last.
    ``noticed``: the number of partitions with a notice. ``within_deadband``: the number of entries with a last value that was
    not sent, because it is within the dead-band. ``failure``: why the last run was incomplete. ``failure_rejected``: the file
    or table of the last run is rejected because of this failure. ``unchanged``: the last run found the content that was read
    before. ``reading``, ``read_at``: if ``unchanged``, the last run of the file or table that read records, and its begin.
    """

    name: str
    partitions: int
    rejected: int
    last_run_at: float | None = None
    last_run: RunSummary | None = None
    failure: str = ""
    failure_rejected: bool = False
    unchanged: bool = False
    reading: RunSummary | None = None
    read_at: float | None = None
    notices: tuple[PartitionNotice, ...] = ()
    noticed: int = 0
    within_deadband: int = 0


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """The last run of a pipeline.

    ``started``: seconds since the epoch. The other members have the same meaning as in `PipelineStatus`.
    """

    started: float
    failure: str
    failure_rejected: bool


class EntryOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of an entry's value: the record at ``position`` of ``partition``, read at ``read_at``.

    ``facts``: the connector's facts about the partition (such as hash, owner and mtime of a file). ``pipeline`` is empty for an
    entry that was found in the service and that no source has named. ``run``: the number of the reading; 0: none. ``rejected``:
    the service rejected the value. ``row_hash``: the hash of the record (`Mapping.row_hashes`) as a signed integer. ``digest``:
    the digest of the partition's mapping. ``delivered_at``: when the service acknowledged the entry; None if it is not known.
    ``operation``, ``status``: the acknowledged request and its HTTP status. ``last_read``: a later value of the source that was
    not sent, because it is within the dead-band; None: there is none. Times are seconds since the epoch.
    """

    workspace: str
    sink: str
    key: str
    value: str | None
    data_type: str
    removed: bool
    pending: bool
    position: Position | None
    pipeline: str
    partition: str
    read_at: float | None
    facts: Mapping[str, str]
    run: int = 0
    rejected: bool = False
    row_hash: int = 0
    digest: str = ""
    delivered_at: float | None = None
    operation: str = ""
    status: int | None = None
    last_read: str | None = None
