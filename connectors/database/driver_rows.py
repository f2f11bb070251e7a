"""Frames of rows that a driver returns as tuples of text, for databases without a text protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import polars as pl

from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import Frame, ResultColumn
from connectors.database.values import apply_settings

_FETCHED = 1000
"""Rows that are fetched at once; a frame exceeds ``batch_bytes`` by this number of rows at most."""


class RowCursor(Protocol):
    """The part of a DB-API cursor that reads rows."""

    def fetchmany(self, size: int) -> Sequence[Sequence[Any]]:
        """Return the next rows; none at the end."""


def text_frames(
    cursor: RowCursor, columns: Sequence[ResultColumn], options: DatabaseOptions, deadline: Deadline
) -> Iterator[Frame]:
    """Yield the rows in frames of bounded rows and bytes, at least one; every value is a text or None.

    Raises:
        SourceUnavailable: a time limit is exceeded.
    """
    names = [column.name for column in columns]
    rows: list[tuple[str | None, ...]] = []
    size = 0
    while fetched := cursor.fetchmany(min(_FETCHED, options.batch_rows - len(rows))):
        rows += [tuple(row) for row in fetched]
        size += sum(len(value) for row in fetched for value in row if value is not None)
        if len(rows) >= options.batch_rows or size >= options.batch_bytes:
            yield _frame(rows, names, columns, options)
            rows, size = [], 0
            deadline.restart()
        if not deadline.left():
            raise deadline.exceeded()
    yield _frame(rows, names, columns, options)


def _frame(
    rows: Sequence[tuple[str | None, ...]],
    names: Sequence[str],
    columns: Sequence[ResultColumn],
    options: DatabaseOptions,
) -> Frame:
    records = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return apply_settings(Frame(records=records), columns, options, native_binary=False)
