"""What a connector hands over: batches of records as columns of text, and where each record stood."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

Cursor: TypeAlias = Mapping[str, object]
"""An opaque resume token of the connector's own making; anything JSON can hold."""

Position: TypeAlias = int | str
"""Where a record stands in its partition: a row number as a spreadsheet counts (the header is row 1), or a primary key."""

Deletes: TypeAlias = Literal["keep", "remove"]

NOTICE = "file.notice"
"""The fact that is a sentence for people about what a reading guessed or left out; `ingestd status` and receipts show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """An independently ordered part of a source: a file, a table.

    ``snapshot`` promises that one reading from the first batch to the last is the partition's whole truth, so that a
    record that is missing has vanished; ``deletes`` says what then becomes of its entries. A partition that is no
    snapshot (an incremental query, a log) hands over what is new since the cursor.
    """

    name: str
    snapshot: bool = True
    deletes: Deletes = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A record that can't become entries, parked with the reason.

    ``record`` is the record as it was, field by field where fields could be told apart, else ``{"text": …}``.
    ``reason`` is a sentence, ``field`` the field it is about (empty for the whole record).
    """

    position: Position
    reason: str
    field: str = ""
    record: Mapping[str, str | None] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records between two cursors.

    ``records``: one row a record; every column is ``pl.String``, the text exactly as the source has it; null means that
    the record has no such field. May have no rows.
    ``positions``: as many values as ``records`` has rows, ``pl.Int64`` (row numbers) or ``pl.String`` (keys).
    ``cursor``: after the last record of this batch; made durable together with it.
    ``facts``: what is true of every record here and can be named in a mapping, such as ``file.name`` and ``file.stem``;
    also kept as the origin of the entries (``file.sha256``, ``file.mtime`` …).
    ``rejects``: records of this stretch that could not be read.
    ``last``: the partition's end was reached; of a snapshot partition exactly one batch a reading says so.
    ``unchanged``: the source was touched since the cursor but its content is the same; no records, ``last`` is set.
    ``partial``: what this reading hands over amends what was read elsewhere and is nobody's whole truth: nothing vanishes
    because it is not here. ``resolves``: the references (`Rejected.reference`) that the records here, good or bad, stand in
    for; those are parked no longer once this batch is durable.
    ``header``: the columns are the partition's own (a header row, a table), not only those that occur in this batch, so
    that a column which a mapping names and which is absent here is absent everywhere.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Something of a partition that is parked.

    ``reference`` names it in `Batch.resolves`. ``subject``: a record that can't become entries, an entry that the service
    refused, or one that another pipeline writes. ``record``: as it was in the source, where it is a record; of an entry the
    ``key`` is known, and ``position`` is that of the record which gave it its value. ``facts``: of the reading that parked
    it, which may be an earlier one. ``status``: the service's, where it was the service that refused.
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
class Settlement:
    """What became of a partition's last reading, once all of it was delivered or parked.

    ``run`` numbers the reading; ``started`` and ``ended`` are seconds since the epoch; ``digest`` is that of the mapping;
    ``sink`` is where its entries went. ``records`` were read; entries were ``created``, ``updated``, ``unchanged`` and
    ``removed``: a reading that took up after a crash finds unchanged what the interrupted one had brought. ``rejected``: how
    much of the partition is parked now, ``refused``: how many of these are entries. ``facts``: of the reading.
    ``rejects`` streams what is parked, in the order of the positions, in bounded memory.
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
    facts: Mapping[str, str]
    rejects: Callable[[], Iterator[Rejected]]
