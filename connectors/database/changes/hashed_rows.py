"""Rows with a hash that the server computes; and the sweep, which compares the keys of all rows with the row index.

The sweep finds removed rows and changed keys. If the method may miss written rows, the server also hashes each row.
Rows with a different hash are then read by their keys. So if no row has changed, a sweep transfers only keys and hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl
from msgspec.structs import replace

from connectors.database.batches import positions_of
from connectors.database.changes.method import ChangeMethod, Restriction
from connectors.database.changes.row_index import RowIndex
from connectors.database.port import PLACEHOLDER, Frame, ReadSession, ResultColumn, SqlDialect

_HASH = "ingestd_row_hash"
_MOST_READ = 5_000
"""The maximum number of rows that a sweep reads by their keys. If more rows differ, everything is read."""
_MOST_REMOVED = 100_000
_KEYS_IN_STATEMENT = 1_000


class HashedRows(NamedTuple):
    """How the rows of one reading are read: session, columns, row hash and method."""

    session: ReadSession
    columns: Sequence[ResultColumn]
    hashed: ResultColumn | None
    """The column of the row hash; None if the server computes no hash."""
    definition: str
    """A digest of the settings and facts on which the row hashes depend."""
    method: ChangeMethod
    restriction: Restriction | None
    """The condition that selects the rows that may have changed; None selects all rows."""

    @property
    def dialect(self) -> SqlDialect:
        """The SQL dialect of the database."""
        return self.method.dialect

    @property
    def key_columns(self) -> Sequence[ResultColumn]:
        """The key columns, in the order of the key."""
        return [column for name in self.dialect.options.keys for column in self.columns if column.name == name]

    @property
    def with_hash(self) -> Sequence[ResultColumn]:
        """The columns, and the column of the row hash if the server computes hashes."""
        return [*self.columns, self.hashed] if self.hashed is not None else self.columns

    def split(self, frame: Frame) -> tuple[Frame, pl.Series, pl.Series]:
        """Return the frame without its hash column, the positions of its rows, and their hashes (null: unknown)."""
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
    """Return the column with the hash of a row of ``columns``; None if the server computes no hash."""
    expression = dialect.row_hash(columns)
    name = _HASH
    while name in {column.name for column in columns}:
        name += "_"
    return ResultColumn(name=name, type="", expression=expression) if expression else None


def decode(hashes: pl.Series) -> pl.Series:
    """Convert hexadecimal hashes to bytes."""
    return hashes.str.decode("hex", strict=False)


def select_rows(frame: Frame, mask: pl.Series) -> Frame:
    """Return the rows of a frame for which the mask is true."""
    if mask.all():
        return frame
    places = {place: row for row, place in enumerate(mask.arg_true().to_list())} if frame.faults else {}
    faults = {places[at]: fault for at, fault in frame.faults.items() if at in places}
    return Frame(records=frame.records.filter(mask), faults=faults)


class SweptKeys(NamedTuple):
    """The result of a sweep. ``removed``: positions of removed rows. ``different``: keys of rows with a different hash."""

    removed: tuple[str, ...]
    different: pl.DataFrame


def sweep_keys(rows: HashedRows, index: RowIndex) -> SweptKeys | None:
    """Compare the keys of all rows with the index. If the method may miss written rows, also compare the hashes.

    Return None if everything must be read: the index can't be used, a key occurs twice or is inexact, or too many rows differ.
    """
    names, keys = rows.dialect.options.keys, rows.key_columns
    hashed = None if rows.method.finds_every_change else rows.hashed
    different: list[pl.DataFrame] = []
    is_usable = True
    index.begin_list()
    for frame in rows.session.frames([*keys, hashed] if hashed is not None else keys, rows.dialect.source):
        is_usable = is_usable and index.is_valid and not frame.faults
        if not is_usable:
            continue  # the result is read to its end, because only then can the next statement run
        positions = positions_of(frame.records, names, first=1)
        index.add_listed(positions)
        if hashed is not None:
            found = frame.records.filter(index.select_new(positions, decode(frame.records[hashed.name])))
            different.append(found.select(names))
            is_usable = sum(one.height for one in different) <= _MOST_READ
    removed = index.missing(_MOST_REMOVED) if is_usable else None
    if removed is None or any(one[name].null_count() for one in different for name in names):
        return None
    empty = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return SweptKeys(tuple(removed), pl.concat([empty, *different]))


def read_keys(rows: HashedRows, keys: pl.DataFrame) -> Iterator[Frame]:
    """Yield the rows with these keys. If the database ignores the case of text, it may also return other rows."""
    row = f"({', '.join([PLACEHOLDER] * keys.width)})" if keys.width > 1 else PLACEHOLDER
    names = ", ".join(map(rows.dialect.quote, keys.columns))
    for page in keys.iter_slices(_KEYS_IN_STATEMENT):
        where = f"WHERE ({names}) IN ({', '.join([row] * page.height)})"
        parameters = tuple(value for values in page.iter_rows() for value in values)
        yield from rows.session.frames(rows.with_hash, rows.dialect.source, where, parameters)
