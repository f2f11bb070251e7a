"""The seam between what should be in the sinks (intake) and what gets it there (delivery).

The mirror holds, for every (sink, key), the value the sink should have and whether the service is known to have it.
What is *pending* is grouped in **segments**: at most one request's worth of entries of one sink and one kind, with the
request's items already encoded. An entry belongs to the segment that carries its desired value; it is delivered when its
segment is settled. An entry that changes again leaves its old segment for a new one, so an old value can't be sent any more.

What every implementation promises (``tests/contract`` holds the suite):

* What a method reported is durable. A crash inside it leaves what was before, or a part of what was asked for; asking
  again completes it. Long work is several transactions, so that others write between them.
* The entries, the rejects and the cursor of a batch of an incremental partition become durable together; those of a snapshot
  do so at the latest with the end of its run.
* Two claims that are out at the same time never hold the same key, and a key whose older value is out (claimed, not
  yet settled or released) is not handed out again until that claim is back: order per key.
* A segment's id is never used again, so it may be part of an idempotency key.
* A claim that is never given back (a crash) is pending after the next start.

What is rejected is worked with by `ingestd.mirror.rejections`; sinks are compared with the mirror by `ingestd.mirror.drift`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.record import Cursor, Deletes, Position, Reject, Settlement
from ingestd.mirror.drift import DriftStatus
from ingestd.mirror.rejections import Rejection

Kind: TypeAlias = Literal["create", "update", "delete"]
"""What the service is believed to need: an entry it does not know, one it knows, one to be removed."""


# ---------------------------------------------------------------------------------------------------- intake


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """What is known of a partition before a run.

    ``cursor``: of the last reading that ended (None: never, or with another mapping). ``current``: nobody else of the
    pipeline has changed entries since, so what that reading said still stands. ``snapshot`` fetches its row hashes
    (``pl.UInt64``, sorted; eight megabytes for a million rows, which most looks at a partition do not need), or is None
    where differences can't be relied on: not ``current``, or ``repeats``: two records of the partition have made the same key.
    ``awaiting``: the cursor that was read to its end but whose ``settled`` has not been acknowledged, or None.
    """

    id: int
    name: str
    cursor: Cursor | None
    current: bool
    snapshot: Callable[[], pl.Series] | None
    repeats: bool
    awaiting: Cursor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in numbers: records read, entries by what became of them, records parked."""

    id: int
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    collided: bool
    """The differences alone could not decide who owns a key: read the partition again, whole."""

    @property
    def changed(self) -> bool:
        """Whether the run brought anything new, good or bad."""
        return bool(self.created or self.updated or self.removed or self.rejected)


class Intake(Protocol):
    """The intake's side of the mirror. Methods block; the caller owns a thread for them."""

    def open_partition(self, pipeline: str, partition: str, sink: SinkAddress, digest: str) -> PartitionState:
        """The partition's state under the mapping ``digest``; made known if it was not."""

    def begin_run(self, partition: int, *, snapshot: bool, whole: bool) -> int:
        """A new run of a partition, by id. ``whole``: every record is mapped, the differences are not relied on."""

    def commit(
        self,
        run: int,
        *,
        entries: pl.DataFrame,
        records: int,
        rejects: Sequence[tuple[Reject, int | None]],
        cursor: Cursor,
        facts: Mapping[str, str],
        resolved: Sequence[str] = (),
    ) -> int:
        """Make one batch durable; the number of entries that changed.

        ``entries``: ``key``, ``value``, ``data_type`` (String), ``row_hash`` (UInt64), ``position`` (Int64 or String), in
        the order of the records; of equal keys the last wins. ``rejects``: each with its row hash, None where the record
        could not be read at all. ``records``: how many were read, mapped or not. ``resolved``: references of what is parked
        anywhere in the pipeline and is so no longer; one that names nothing, or something else by now, is passed over.
        """

    def finish_run(
        self, run: int, *, cursor: Cursor, seen: pl.Series | None, deletes: Deletes, partial: bool = False
    ) -> RunSummary:
        """End a run that was read to its end.

        ``seen``: all row hashes of a snapshot reading, sorted; entries whose record vanished are removed if asked. None where
        the reading was no snapshot, was ``partial`` (see `Batch.partial`), or found its source unchanged. After a run that
        ``collided`` nothing is noted as read.
        """

    def fail_run(self, run: int, reason: str, *, broken: bool) -> None:
        """End a run that failed; what was committed stays. ``broken``: the partition is parked with the reason."""

    def note_pass(self, pipeline: str, *, began: float, whole: bool) -> None:
        """Every partition of the pipeline was read to its end, or is as it was read, in a pass that began at ``began``.

        ``whole``: each is a snapshot with ``deletes: remove``, so that the sources name all that their entries may hold.
        """

    def known_content(self, run: int, sha256: str) -> tuple[str, float] | None:
        """The partition of the run's pipeline that was last read with this content before the run, and when; None: none was."""

    def settled_partitions(self, pipeline: str) -> list[tuple[int, str, Cursor]]:
        """(id, name, cursor) of each partition read to its end of which nothing is pending and no acknowledgement noted."""

    def settlement(self, partition: int) -> Settlement:
        """What became of the last reading of a partition that `settled_partitions` named."""

    def acknowledge(self, partition: int, cursor: Cursor, *, gone: bool = False) -> None:
        """Note that the connector's ``settled`` has returned for this cursor; ``gone``: and has taken the partition away."""

    def old_partitions(self, pipeline: str) -> list[tuple[int, str]]:
        """(id, name) of a few partitions that were read long ago, for a look at whether the source still has them.

        Each call returns the next few; after the last ones an empty list, and then the first ones again.
        """

    def note_gone(self, partition: int) -> None:
        """Note that the source no longer has a partition; opening it again revokes this."""

    def prune(self) -> None:
        """Delete rows of partitions that are gone, and of old runs, to which nothing refers; does nothing unless it is due.

        Every entry of a sink, rejected row and drift finding keeps its partition and run, a partition its last run, and a
        pipeline its newest partitions.
        """


# -------------------------------------------------------------------------------------------------- delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneState:
    """A sink as the mirror knows it.

    ``workspace_id`` and ``sink_id`` are the service's ids, empty until the sink was found or created; ``adopted``: its
    entries have been read into the mirror.
    """

    id: int
    address: SinkAddress
    workspace_id: str
    sink_id: str
    adopted: bool
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart:
    """The live items of one segment: ``body`` is the JSON array of wire items, ready to be sent.

    An item is ``{"key","value","dataType"}``, or ``{"key","delete":true}`` where ``kind`` is delete. ``whole``: these are
    all live items of the segment; false where the limits of the claim cut it.
    """

    segment: int
    kind: Kind
    items: int
    body: bytes
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Pending work handed out: its keys are disjoint from those of every other claim that is out."""

    sink: int
    parts: tuple[ClaimPart, ...]

    @property
    def items(self) -> int:
        """How many entries the claim holds."""
        return sum(part.items for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """An entry that the service refused for good, with the service's words, and which request it was.

    ``member``: the member of the entry that the service names (``key``, ``value``, ``dataType``); empty where it names none.
    """

    key: str
    reason: str
    member: str = ""
    status: int | None = None
    operation: str = ""
    request_id: str = ""


ColumnsOf: TypeAlias = Callable[[str, str, str], tuple[str, ...]]
"""Of a pipeline's name, an entry's key and one of its members: the columns of the source that it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One HTTP request and what came of it; ``sentence`` is for a person, ``outcome`` of the glossary's five words."""

    operation: str
    items: int
    status: int | None
    milliseconds: float
    outcome: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is in a lane's way: ``sentence`` says what is wrong and what to do. Times are seconds since the epoch.

    ``since``: when it began; ``until``: when the lane tries again.
    """

    standing: Literal["backing off", "paused"]
    sentence: str
    since: float
    until: float


class Deliverable(Protocol):
    """The delivery's side of the mirror. Async; a method returns when its transaction is durable."""

    async def lanes(self) -> list[LaneState]:
        """Every sink that the mirror knows."""

    async def lane(self, sink: int) -> LaneState | None:
        """One sink; None if the mirror does not know it."""

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> None:
        """Note the service's ids of a sink."""

    async def forget_sink(self, sink: int) -> None:
        """The service no longer has the sink: every entry that should be in it is pending again, as a create."""

    async def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        """Take over what the service holds: ``key``, ``value`` (null allowed), ``data_type``; how many pending it settled.

        An entry that is pending with an equal value and type is settled without a request; one that differs becomes an
        update; keys that no source has named are kept as delivered, as the service said them last. May be called with the sink
        piece by piece.
        """

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        """The oldest pending entries, up to the limits (at least one); None where nothing can be handed out now."""

    async def settle(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        """The whole claim was delivered."""

    async def settle_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        parked: Sequence[Parked] = (),
        attempt: DeliveryAttempt | None = None,
    ) -> None:
        """Some keys of the claim were delivered, some parked; the claim stays out with the rest until released."""

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        """Give a claim back; what was not settled is pending again. After `settle` this does nothing."""

    async def note_attempt(self, sink: int, attempt: DeliveryAttempt) -> None:
        """Keep an attempt for the record; only the newest are kept."""

    async def note_trouble(self, sink: int, trouble: Trouble | None) -> None:
        """Keep what is in the sink's way, until something of it is settled or it is told that nothing is (None)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """A sink in numbers for `ingestd status`.

    ``unexplained``: entries that no source has named; ``read``: every active pipeline of the sink was read completely since
    the sink was adopted. ``doubt``: why the mirror may not know what the sink holds; empty if it does.
    """

    address: SinkAddress
    sink_id: str
    entries: int
    pending: int
    rejected: int
    last_attempt: DeliveryAttempt | None
    drift: DriftStatus | None = None
    trouble: Trouble | None = None
    unexplained: int = 0
    read: bool = True
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """A pipeline in numbers; times are seconds since the epoch. ``notice``: what its last reading guessed or left out."""

    name: str
    partitions: int
    last_run_at: float | None
    last_run: RunSummary | None
    rejected: int
    failure: str
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOrigin:
    """Where an entry's value came from: the record at ``position`` of ``partition``, as read at ``read_at``.

    ``facts``: what the connector told of the partition then (a file's hash, owner, time of change). ``pipeline`` is empty
    for an entry that was found in the service and that no source has named.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOwnership:
    """What decides whether a sink is compared with its sources.

    ``rejected``: records, entries and partitions of its active pipelines that are rejected. ``doubt``: see `SinkStatus`.
    """

    rejected: int
    doubt: str


class Observable(Protocol):
    """What status pages and tests look at; consistent within one call."""

    def ownership(self, sink: SinkAddress) -> SinkOwnership | None:
        """What is known of a sink that was adopted; None if it was not. Its cost does not grow with the sink."""

    def unexplained_of(self, sink: SinkAddress) -> int:
        """How many entries of a sink no source explains. Reads all its entries."""

    def sinks(self) -> list[SinkStatus]:
        """Every sink, by address."""

    def pipelines(self) -> list[PipelineStatus]:
        """Every pipeline that ever ran, by name."""

    def pending(self) -> int:
        """How many entries wait for delivery, over all sinks."""

    def rejected(self) -> int:
        """How many records and entries are parked."""

    def rejections(self, *, limit: int) -> list[Rejection]:
        """What was parked last, the newest first."""

    def origins(self, key: str) -> list[EntryOrigin]:
        """Where the entries of this key, one a sink at the most, came from."""
