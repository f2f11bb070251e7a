"""The interface between intake, which writes desired values, and delivery, which sends them.

The mirror stores, for every (sink, key), the desired value and whether the service has confirmed it. *Pending* entries are
grouped in **segments**. A segment has encoded entries of one sink and one kind, at most as many as one request may contain.
An entry belongs to the segment with its desired value, and is delivered when its segment is acknowledged. An entry that changes
again moves to a new segment, so its old value can no longer be sent.

Guarantees (suite: ``tests/contract``):

* After a method returns, its effect is durable. A crash during a method leaves the old state or a part of the new state; a
  second call completes the new state. Long operations use several transactions, so that other writers can run between them.
* The entries, the rejects and the cursor of a batch of an incremental partition become durable together. The batches of a
  snapshot become durable at the end of its run at the latest.
* Two open claims never contain the same key. A key with an older value in an open claim is not claimed again until that claim
  is acknowledged or released. This preserves the order for each key.
* A segment's id is never reused, so it may be part of an idempotency key.
* After a crash, the entries of open claims are pending again.

This module has the values that both sides exchange. `ingestd.mirror.reports` has the status for people,
`ingestd.mirror.rejections` the values about rejections, and `ingestd.mirror.drift` the values about drift checks.
`ingestd.mirror.sqlite` has the stores with their methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.record import Cursor, Deletes, Position
from ingestd.mirror.row_hashes import RowHashes

Removal: TypeAlias = Deletes | Literal["defer"]
"""What a complete reading does with entries that none of its records names. "defer": keep them until the next reading decides;
other values: see `Deletes`."""

Kind: TypeAlias = Literal["create", "update", "delete"]
"""The change that the service probably needs: a new entry, a changed entry, a removal."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a complete reading, as row hashes.

    ``hashes``: one hash for each record, in any order; a million hashes take 8 MB. ``sections``: the sections of the source,
    with the columns ``digest`` (Binary) and ``records`` (UInt32), see `ingestd.core.record.Section`; None: not known. If the
    sections are known, the row hashes are in the order of the sections.
    """

    hashes: RowHashes
    sections: pl.DataFrame | None = None


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a partition before a run.

    ``cursor``: cursor of the last complete reading (None: never read, or read with another mapping). ``current``: no other
    partition of the pipeline has written or removed an entry since the last complete reading, so its result is still valid.
    ``repeats``: two records of this reading produced the same key. ``snapshot`` loads the row hashes of this reading; None:
    differences are unreliable, because it is not ``current`` or ``repeats`` keys. ``awaiting``: a cursor that was read but not
    yet acknowledged to the connector, or None. ``withheld``: the cursor of a reading that is held or was discarded, or None.
    While the source is unchanged after this cursor, there is nothing to read. ``after_rollback``: a person rolled the withheld
    reading back, so it is withheld even without a guard. ``is_rejected``: a later reading rejected the partition.
    """

    id: int
    name: str
    cursor: Cursor | None
    current: bool
    snapshot: Callable[[], Snapshot] | None
    repeats: bool
    awaiting: Cursor | None
    withheld: Cursor | None = None
    after_rollback: bool = False
    is_rejected: bool = False


class HeldRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run with entries that are stored but do not change the mirror.

    ``since``: when the hold of the partition began, in seconds since the epoch; a later run of the partition replaces the held
    run and keeps this time. ``state``: an ``approved`` run is being written; the entries of a ``discarded`` run are deleted.
    ``records``: the number of records read. ``created``, ``updated`` and ``removed``: the number of entries that the run would
    create, update and remove. The names of the members are part of the output of `ingestd status --json`.
    """

    run: int
    pipeline: str
    partition: str
    since: float
    reasons: tuple[str, ...]
    state: Literal["held", "approved", "discarded"]
    records: int
    created: int
    updated: int
    removed: int

    @property
    def sentence(self) -> str:
        """The reasons of the hold, and the commands that approve or discard the run."""
        decide = f"'ingestd approve {self.run}' delivers it; 'ingestd discard {self.run}' deletes it."
        return " ".join((*self.reasons, decide))


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a run: records read, entries by kind of change, records rejected.

    ``withheld``: if the entries were not written, the held or discarded run with the same content, which may be this run.
    ``replaces``: the number of the held run that became obsolete because this run was written. ``notice``: a sentence about
    guesses and omissions of the reading; set only in the result of a run that has ended.
    """

    id: int
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    valueless: int
    """Records that were mapped, gave no entry, and were not rejected; all records if no record of the reading gave a value."""
    collided: bool
    """The differences do not show which record owns a key, so the whole partition must be read again."""
    withheld: HeldRun | None = None
    replaces: int | None = None
    notice: str = ""

    @property
    def changed(self) -> bool:
        """True if the run changed entries or rejected records."""
        return bool(self.created or self.updated or self.removed or self.rejected)

    @property
    def gave_no_value(self) -> bool:
        """True if the reading had records, and none of them gave a value."""
        return 0 < self.records == self.valueless


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a partial reading.

    ``positions``: the positions of the records that were read or found removed; None: there are too many. ``keys``: the keys
    that the records of the reading produce or name. ``kept``: the positions of rejected records with unknown keys; entries from
    these positions stay. ``is_complete``: this reading and the readings before it have found every change.
    """

    positions: pl.Series | None
    keys: pl.Series
    is_complete: bool
    kept: Sequence[str] = ()


class RetriedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored rejection that an operator retries.

    ``id``: the number of the rejection. ``facts``: the facts of the ``run`` that rejected the record. ``row_hash`` (signed) is
    None if the source could not read the fields; ``record`` then has the text of the record. ``record`` is empty if another
    rejection with the same hash stores the record, or if ``entry`` is set. ``entry``: the key, value and data type that were
    rejected because another pipeline had written the key; else None.
    """

    id: int
    run: int
    position: Position
    row_hash: int | None
    reason: str
    record: Mapping[str, str | None]
    facts: Mapping[str, str]
    entry: tuple[str, str | None, str] | None = None

    @property
    def is_readable(self) -> bool:
        """Whether the source has read the fields."""
        return self.row_hash is not None


class WriteBatch(msgspec.Struct):
    """The result of `IntakeStore.batch`.

    ``is_durable``: True after the commit of the batch; False before the commit, or if the state file failed.
    """

    is_durable: bool = False


class LaneState(msgspec.Struct, frozen=True, kw_only=True):
    """A sink in the mirror.

    ``workspace_id`` and ``sink_id`` are the service's ids, empty until the sink is found or created. ``adopted``: the mirror
    has read the entries of the sink. ``claimed_before``: the newest segment of any sink that an earlier process has claimed.
    ``pending``: the number of entries that may be delivered; entries of paused pipelines are not counted.
    """

    id: int
    address: SinkAddress
    workspace_id: str
    sink_id: str
    adopted: bool
    pending: int
    claimed_before: int = 0


class PartOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the values of a segment come from: a run that has read a partition of a pipeline.

    ``file``: the name of the file, if the partition is a file. All members are empty if no source has named the keys.
    """

    pipeline: str = ""
    partition: str = ""
    file: str = ""
    run: int = 0


class ClaimPart(msgspec.Struct, frozen=True, kw_only=True):
    """The live items of one segment: ``body`` is the JSON array of items for the request.

    An item is ``{"key","value","dataType"}``, or ``{"key","delete":true}`` if ``kind`` is delete. ``whole``: ``body`` has all
    live items of the segment; False if the limits of the claim excluded some. ``oldest``: the oldest segment in which one of
    these keys was pending. ``row_steps``: the encoded row numbers of the items in ``origin``, see `encode_row_steps`.
    """

    segment: int
    kind: Kind
    items: int
    body: bytes
    oldest: int
    whole: bool = True
    origin: PartOrigin = PartOrigin()
    row_steps: bytes = b""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Claimed pending entries. No other open claim has any of their keys.

    ``is_complete``: the claim has all entries of the sink that were pending when it was made.
    """

    sink: int
    parts: tuple[ClaimPart, ...]
    is_complete: bool = False

    @property
    def items(self) -> int:
        """The number of entries in the claim."""
        return sum(part.items for part in self.parts)


class RejectedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that the service rejected permanently, with the service's reason and the request.

    ``member``: the member of the entry that the service names (``key``, ``value``, ``dataType``), or empty.
    """

    key: str
    reason: str
    member: str = ""
    status: int | None = None
    operation: str = ""
    request_id: str = ""


ColumnsOf: TypeAlias = Callable[[str, str, str], tuple[str, ...]]
"""Returns the source columns of a member of an entry. Arguments: the pipeline's name, the key, and the member."""


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request and its result. ``sentence``: the result, for people. ``outcome``: see `ingestd.core.outcome`."""

    operation: str
    items: int
    status: int | None
    milliseconds: float
    outcome: str
    sentence: str


class LaneBlocker(msgspec.Struct, frozen=True, kw_only=True):
    """Why a lane cannot deliver: ``sentence`` says what is wrong and what to do. Times are seconds since the epoch.

    ``status``: the status of the lane. ``since``: when the lane became blocked; ``until``: the time of the next attempt. The
    names of the members are part of the output of `ingestd status --json`.
    """

    status: Literal["backing off", "paused"]
    sentence: str
    since: float
    until: float
