"""The values of a plan, and the file of a plan. The JSON of `ingestd plan` uses the names of the members."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ingestd.core.errors import IngestdError
from ingestd.core.record import Position

VERSION = 1
"""The version of a plan's JSON."""


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that would change. A missing old or new value is None, and its type is None, too.

    ``position``: the location, in its partition, of the record with the new value.
    """

    kind: Literal["created", "changed", "removed"]
    key: str
    old: str | None
    old_type: str | None
    new: str | None
    new_type: str | None
    position: Position | None


class PlannedReject(msgspec.Struct, frozen=True, kw_only=True):
    """A record or entry that would be rejected, with its location and the reason."""

    position: Position | None
    reason: str


class PartitionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a sync on a file or table that has new content or a held run.

    ``records``, ``rejected``: counts of records. ``created``, ``changed``, ``removed``, ``unchanged``: counts of entries.
    ``retyped``: changed entries with another data type. ``held``: why the guard would hold the run, as sentences; all counts
    are then of the held run. ``failure``: why the partition can't be read, or empty. ``notice``: what was guessed or skipped,
    or empty. ``changes``, ``rejects``: the first of each kind. ``content``, ``effect``: digests of records and changes.
    """

    pipeline: str
    partition: str
    sink: str
    records: int
    rejected: int
    created: int
    changed: int
    retyped: int
    removed: int
    unchanged: int
    held: tuple[str, ...]
    failure: str
    notice: str
    changes: tuple[PlannedChange, ...]
    rejects: tuple[PlannedReject, ...]
    content: str
    effect: str

    @property
    def counts(self) -> str:
        """The counts of entries, for people."""
        retyped = f" ({self.retyped} with another data type)" if self.retyped else ""
        return f"{self.created} created, {self.changed} changed{retyped}, {self.removed} removed, {self.unchanged} unchanged"

    @property
    def has_changes(self) -> bool:
        """True if entries would change without an approval."""
        return not self.held and bool(self.created or self.changed or self.removed)

    @property
    def has_effect(self) -> bool:
        """True if a sync would change, hold or reject data of this partition, or can't read it."""
        return self.has_changes or bool(self.held or self.rejected or self.failure)


class PipelinePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline of the plan.

    ``skipped``: number of partitions without new content. ``failures``: why the source or partitions can't be read.
    ``configuration``: digest of source, mapping, lookup tables, guard and sink. ``commits``: the number of earlier commits that
    changed the pipeline's entries. ``paused``: a sentence if the pipeline was not read because it is paused; else empty.
    """

    name: str
    sink: str
    skipped: int
    failures: tuple[str, ...]
    configuration: str
    commits: int
    paused: str


class SinkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A sink that the plan changes, or that has pending entries.

    ``known``: the state file has the sink's content; if not, the next delivery finds or creates the sink. ``pending``: number
    of earlier pending entries, which a sync also delivers. ``unexplained``: number of entries that no source names any more (0
    if the configuration keeps them). A sync removes them when it compares the sink, but the execution of a plan keeps them.
    """

    name: str
    known: bool
    pending: int
    unexplained: int


class SyncPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a sync. ``made``: when the plan was made, in UTC. ``pending``: digest of the earlier pending entries."""

    version: int
    made: str
    configuration: str
    pipelines: tuple[PipelinePlan, ...]
    partitions: tuple[PartitionPlan, ...]
    sinks: tuple[SinkPlan, ...]
    pending: str


class PlanUnusable(IngestdError):
    """The file of a plan can't be read; the sentence has the reason."""


def encode_plan(plan: SyncPlan) -> bytes:
    """Return the plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def read_plan(path: Path) -> SyncPlan:
    """Return the plan in a file of ``ingestd plan --save``.

    Raises:
        PlanUnusable: the file can't be read, is not a plan, or has a plan of another version.
    """
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise PlanUnusable(
                f"{path} has version {version} of a plan, and this ingestd reads version {VERSION}. Make the plan again."
            )
        return msgspec.json.decode(content, type=SyncPlan)
    except OSError as error:
        raise PlanUnusable(f"{path} can't be read: {error.strerror or error}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PlanUnusable(f"{path} is no plan of 'ingestd plan --save': {error}.") from error


class _Versioned(msgspec.Struct):
    version: int
