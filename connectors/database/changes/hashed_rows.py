"""Rows with the hash that the server computes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from msgspec.structs import replace

from connectors.database.batches import positions_of
from connectors.database.changes.method import ChangeMethod, Restriction
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect

_HASH = "ingestd_row_hash"


class HashedRows(NamedTuple):
    """What a reading reads."""

    session: ReadSession
    columns: Sequence[ResultColumn]
    hashed: ResultColumn | None
    """The column of the row hash; None if the server computes none."""
    definition: str
    """Identifies what the hashes depend on."""
    method: ChangeMethod
    restriction: Restriction | None
    """The condition of the rows that may have changed; None: all."""

    @property
    def dialect(self) -> SqlDialect:
        """The SQL of the database."""
        return self.method.dialect

    @property
    def key_columns(self) -> Sequence[ResultColumn]:
        """The key columns, in the order of the key."""
        return [column for name in self.dialect.options.keys for column in self.columns if column.name == name]

    @property
    def with_hash(self) -> Sequence[ResultColumn]:
        """The columns and the one of the row hash."""
        return [*self.columns, self.hashed] if self.hashed is not None else self.columns

    def split(self, frame: Frame) -> tuple[Frame, pl.Series, pl.Series]:
        """Return a frame without its hashes, the positions of its rows, and the hashes as bytes (null: unknown)."""
        records = frame.records
        positions = positions_of(records, self.dialect.options.keys, first=1)
        if self.hashed is None:
            return frame, positions, pl.repeat(None, n=records.height, dtype=pl.Binary, eager=True)
        return replace(frame, records=records.drop(self.hashed.name)), positions, decode(records[self.hashed.name])

    def empty_frame(self) -> Frame:
        """Return a frame without rows."""
        names = [column.name for column in self.columns]
        return Frame(records=pl.DataFrame(schema=dict.fromkeys(names, pl.String)))


def hash_column(dialect: SqlDialect, columns: Sequence[ResultColumn]) -> ResultColumn | None:
    """Return the column with the hash of a row of ``columns``; None if the server computes none."""
    expression = dialect.row_hash(columns)
    name = _HASH
    while name in {column.name for column in columns}:
        name += "_"
    return ResultColumn(name=name, type="", expression=expression) if expression else None


def decode(hashes: pl.Series) -> pl.Series:
    """Return hashes in hexadecimal as bytes."""
    return hashes.str.decode("hex", strict=False)


def select_rows(frame: Frame, mask: pl.Series) -> Frame:
    """Return the rows of a frame where the mask is true."""
    if mask.all():
        return frame
    places = {place: row for row, place in enumerate(mask.arg_true().to_list())} if frame.faults else {}
    faults = {places[at]: fault for at, fault in frame.faults.items() if at in places}
    return Frame(records=frame.records.filter(mask), faults=faults)
