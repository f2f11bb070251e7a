"""The output of a connector: batches of records as columns of text, with a position for each record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

Cursor: TypeAlias = Mapping[str, object]
"""An opaque resume token that the connector defines; any JSON object."""

Position: TypeAlias = int | str
"""The position of a record in its partition: a row number as in a spreadsheet (the header is row 1), or a primary key."""

CHILD_OF = ", at "
"""The separator in the position of a child, between the record's position and the child's path: ``row 3, at parts[2]``."""

Deletes: TypeAlias = Literal["keep", "remove"]

NOTICE = "file.notice"
"""The name of the fact that states what a reading assumed or omitted; `ingestd status` and receipts show this fact."""


def position_text(positions: pl.Series) -> pl.Series:
    """Return positions as text: a row number becomes ``row 3``."""
    return positions if positions.dtype == pl.String else ("row " + positions.cast(pl.String)).alias(positions.name)


def location_text(position: Position) -> str:
    """Return the position of one record as text, in the form of `position_text`."""
    return position if isinstance(position, str) else f"row {int(position)}"


def record_position(position: Position) -> Position:
    """Return a record's position without the path of a child: ``row 3, at parts[2]`` becomes row 3."""
    if isinstance(position, int):
        return position
    found = position.partition(CHILD_OF)[0]
    number = found.removeprefix("row ")
    return int(number) if number != found and number.isdecimal() else found


def row_numbers(positions: pl.Series) -> Sequence[int]:
    """Return the row number of each position; 0 if the position is a primary key.

    A child has the row of its record.
    """
    # For a small file, the evaluation of polars expressions would take longer than all other work on its entries.
    if positions.dtype != pl.String:
        return [one or 0 for one in positions.to_list()]
    if not str(positions.first()).startswith("row "):
        return [0] * len(positions)
    found = (record_position(one or "") for one in positions.to_list())
    return [one if isinstance(one, int) else 0 for one in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """An ordered, independently resumable part of a source, such as a file or a table.

    A ``snapshot`` partition guarantees that one complete reading holds all of its records, so a missing record was removed.
    ``deletes`` states whether the entries of removed records are removed too. An incremental partition (a query by cursor, a
    log) yields the records after the cursor. A ``small`` snapshot partition, such as a small file, has at most about 100 KB.
    Several small partitions may be read before they are stored together.

    ``replayable``: the partition can be read from its start again. A queue is not replayable, and must be incremental: a retry
    or another mapping never resets its cursor, and a retry maps the stored record of the rejection.
    """

    name: str
    snapshot: bool = True
    deletes: Deletes = "keep"
    small: bool = False
    replayable: bool = True

    def __post_init__(self) -> None:
        if self.snapshot and not self.replayable:
            raise ValueError("A snapshot is read as a whole, so it is replayable. Use snapshot=False.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A record that cannot become entries, with the reason.

    ``record`` is the original record by field, or ``{"text": …}`` if its fields are unknown. ``reason`` is a sentence, and
    ``field`` is the field with the fault (empty: the whole record).
    """

    position: Position
    reason: str
    field: str = ""
    record: Mapping[str, str | None] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableColumn:
    """A column of the source with values that could not be read. The values matter only if the mapping uses the column.

    ``rows``: the indexes of the records with an unreadable value; their field is null. None: the whole column can't be read,
    and the records do not have this field. ``reason``: a clause such as ``it holds bytes that are no text``.
    """

    name: str
    reason: str
    rows: tuple[int, ...] | None = None


def located_reason(reject: Reject) -> str:
    """Return the reason of a rejected record with its location."""
    return f"{location_text(reject.position)}: {reject.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Consecutive records of a source, or a part of a source without records.

    ``digest``: sections with equal digests have equal records, in this and in later readings. An empty digest states nothing.
    ``records``: the number of records. ``known``: the records were not read, because the caller knows the digest.
    """

    digest: bytes
    records: int
    known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records between two cursors.

    ``records``: one row for each record; may be empty. Every column is ``pl.String`` with the exact text of the source; null:
    the record has no such field. ``positions``: one value for each row of ``records``, ``pl.Int64`` (row numbers) or
    ``pl.String`` (keys). ``cursor``: the cursor after the last record of this batch; it becomes durable with the batch.
    ``facts``: facts about every record of the batch, such as ``file.name`` and ``file.stem``, for mappings. They are stored as
    the origin of the entries (``file.sha256``, ``file.mtime`` …). ``rejects``: records between the two cursors that could not
    be read. ``last``: True only for the last batch of a reading. A reading without such a batch counts as interrupted.
    ``unchanged``: since the cursor, the source was written again with the same content. The batch has no records and is the
    ``last`` batch. ``partial``: the reading is not a complete snapshot. It has only changed records of its partition, or amends
    records of other partitions. No missing record is removed, except the records of ``removed``. ``resolves``: references
    (`Rejected.reference`) of rejected records that this batch replaces. Their rejections end when the batch is durable.
    ``removed``: the positions of records that the source no longer has; only if positions are keys. A tuple here in the last
    batch of a partial reading, even if empty, states that this and the earlier readings found every change. ``sections``: the
    sections of the batch's records, and the known sections between them, in the order of the source. Either every batch of a
    reading has sections, or none has; see `ingestd.sdk.ReadsSections`. ``header``: ``records`` has all columns of the
    partition (a header row, a table). So a column that the mapping names, and that is absent here, is absent in the whole
    partition. ``unreadable``: columns with values that could not be read; see `ingestd.core.unreadable`.
    """

    records: pl.DataFrame
    positions: pl.Series
    cursor: Cursor
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()
    last: bool = False
    unchanged: bool = False
    header: bool = False
    partial: bool = False
    resolves: tuple[str, ...] = ()
    removed: tuple[str, ...] | None = None
    sections: tuple[Section, ...] = ()
    unreadable: tuple[UnreadableColumn, ...] = ()

    @property
    def record_count(self) -> int:
        """The number of records between the two cursors, including rejected records and the records of known sections."""
        known = sum(section.records for section in self.sections if section.known)
        return self.records.height + len(self.rejects) + known


def position_at(positions: pl.Series, row: int) -> Position:
    """Return the position in one row of a batch."""
    position = positions[row]
    return position if isinstance(position, str) else int(position)


def reject_rows(batch: Batch, bad: Mapping[int, tuple[str, str]]) -> Batch:
    """Return the batch with some rows moved to its rejects. ``bad``: by row, the field and the reason of the reject."""
    rejects = tuple(
        Reject(
            position=position_at(batch.positions, row),
            reason=reason,
            field=field,
            record=batch.records.row(row, named=True),
        )
        for row, (field, reason) in sorted(bad.items())
    )
    keep = ~pl.int_range(batch.records.height, eager=True).is_in(list(bad))
    return dataclasses.replace(
        batch,
        records=batch.records.filter(keep),
        positions=batch.positions.filter(keep),
        rejects=(*batch.rejects, *rejects),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A stored reject of a partition.

    ``reference`` names the reject in `Batch.resolves`. ``subject``: a record that cannot become entries, an entry that the
    service refused, or (conflict) an entry that another pipeline writes. ``record`` is the original record, if the subject is a
    record. For an entry, ``key`` is its key, and ``position`` is the position of the record that gave its value. ``facts`` are
    the facts of the reading that made the reject, which may be old. ``status``: the HTTP status of a refusal by the service.
    """

    reference: str
    subject: Literal["record", "entry", "conflict"]
    position: Position
    reason: str
    field: str = ""
    key: str = ""
    status: int | None = None
    record: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """The results of a partition's last reading, after each of its entries was delivered or rejected.

    ``run`` is the number of the reading. ``started`` and ``ended`` are seconds since the epoch. ``digest`` is the digest of the
    mapping. ``sink`` names the sink of the entries. ``records`` is the number of records read. Entries were ``created``,
    ``updated``, ``unchanged`` and ``removed``; a reading after a crash counts the entries of the interrupted reading as
    unchanged. ``rejected`` is the number of current rejects of the partition, ``refused`` the number of entries among them.
    ``valueless`` is the number of records that gave no entry and were not rejected. ``facts`` are the facts of the reading.
    ``rejects`` streams the current rejects in the order of their positions, in bounded memory.
    """

    run: int
    started: float
    ended: float
    pipeline: str
    sink: str
    digest: str
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    refused: int
    valueless: int
    facts: Mapping[str, str]
    rejects: Callable[[], Iterator[Rejected]]
