"""Events of the intake."""

from __future__ import annotations

from typing import Literal

from ingestd.telemetry.event import DebugEvent, ErrorEvent, Event, WarningEvent


class PartitionRead(Event, frozen=True, kw_only=True):
    """A partition was read completely and its entries are in the mirror.

    ``map_seconds``: the part of ``seconds`` for comparing and mapping records. ``store_seconds``: the part for writes to the
    mirror. In the rest of ``seconds``, the source is read. ``valueless``: records without an entry that were not rejected.
    ``notice``: a sentence on guesses and omissions of the reading, such as keys with several values.
    """

    pipeline: str
    partition: str
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    valueless: int
    seconds: float
    map_seconds: float
    store_seconds: float
    notice: str = ""


class PartitionReadings(Event, frozen=True, kw_only=True):
    """The sum of all `PartitionRead` and `PartitionAcknowledged` events in a minute, for a partition that is read often.

    An example is a subscription. ``notice``: the last notice.
    """

    pipeline: str
    partition: str
    readings: int
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    valueless: int
    acknowledged: int
    notice: str


class PartitionUnchanged(DebugEvent, frozen=True, kw_only=True):
    """A partition was read completely and is unchanged. A database that is polled every minute emits this every minute."""

    pipeline: str
    partition: str
    records: int
    seconds: float


class RunHeld(WarningEvent, frozen=True, kw_only=True):
    """The guard held a run: none of its entries is delivered until it is approved, or the source is corrected."""

    pipeline: str
    partition: str
    run: int
    sentence: str


class RunReleased(Event, frozen=True, kw_only=True):
    """A run is no longer held. ``by``: the account that approved or discarded the run; empty if a later reading passed."""

    pipeline: str
    partition: str
    run: int
    decision: Literal["approved", "discarded", "replaced"]
    by: str


class RunsRolledBack(WarningEvent, frozen=True, kw_only=True):
    """Entries were set back to their values before some runs. ``left``: entries that changed later, and were not set back."""

    chosen: str
    runs: int
    restored: int
    removed: int
    created: int
    left: int
    by: str


class RecordsRejected(WarningEvent, frozen=True, kw_only=True):
    """Some records of a partition were rejected; the sentence has location and reason of the first record."""

    pipeline: str
    partition: str
    records: int
    sentence: str


class PartitionRejected(ErrorEvent, frozen=True, kw_only=True):
    """A partition can't be read as configured. It is read again when the partition or the configuration changes."""

    pipeline: str
    partition: str
    sentence: str


class PartitionReadAgain(Event, frozen=True, kw_only=True):
    """Two records produce the same key, so the differences are ambiguous: the whole partition is read again."""

    pipeline: str
    partition: str


class PartitionAcknowledged(Event, frozen=True, kw_only=True):
    """All entries of a partition were delivered or rejected, and the connector was notified."""

    pipeline: str
    partition: str


class AcknowledgementFailed(ErrorEvent, frozen=True, kw_only=True):
    """The connector could not acknowledge a partition or a commit (such as a file that can't be moved); the call is retried."""

    pipeline: str
    partition: str
    sentence: str


class ContentKnown(Event, frozen=True, kw_only=True):
    """A partition has content that a partition of the pipeline had before; the sentence names the earlier partition."""

    pipeline: str
    partition: str
    sentence: str


class SourceNotice(Event, frozen=True, kw_only=True):
    """A notice of a source, such as how its folder is watched."""

    pipeline: str
    sentence: str


class SourceAway(WarningEvent, frozen=True, kw_only=True):
    """A source is unavailable; it is retried later."""

    pipeline: str
    sentence: str
    retry_in_seconds: float


class SourceBack(Event, frozen=True, kw_only=True):
    """A source is available again."""

    pipeline: str


class SourceStopped(ErrorEvent, frozen=True, kw_only=True):
    """A source can't be used as configured; it is retried at the next event, schedule or restart."""

    pipeline: str
    sentence: str


class IntakePaused(ErrorEvent, frozen=True, kw_only=True):
    """The state file cannot be written. All pipelines wait and one retries; delivery continues.

    ``pipeline``: the pipeline that detected the failure.
    """

    pipeline: str
    sentence: str
    retry_in_seconds: float


class IntakeResumed(Event, frozen=True, kw_only=True):
    """The state file can be written again; all pipelines read again."""


class SourceFailed(ErrorEvent, frozen=True, kw_only=True):
    """A call of a source ended with an unexpected exception outside of its supervised part; other sources continue."""

    pipeline: str
    sentence: str
    traceback: str


class CursorMoved(WarningEvent, frozen=True, kw_only=True):
    """An operator moved the cursor of a partition. ``by``: the requesting account. ``action``: the command."""

    pipeline: str
    partition: str
    by: str
    action: str


class SourceSlow(WarningEvent, frozen=True, kw_only=True):
    """A call of a source takes a long time, and may hang. So the other sources get another thread."""

    pipeline: str
    seconds: float
    sentence: str
