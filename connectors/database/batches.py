"""Batches of the rows of one streaming SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import polars as pl
from sqlalchemy.engine import Connection
from sqlalchemy.sql.base import Executable

from connectors.database.boundary import Boundary, CursorValue
from connectors.database.engine import restart_limit
from connectors.database.exact import TextFault, build_reject, check_names, text_columns
from connectors.database.options import DatabaseOptions
from connectors.database.statement import select
from ingestd.sdk import Batch, Cursor, Reject

_Rows: TypeAlias = Sequence[Sequence[Any]]


def snapshot(connection: Connection, options: DatabaseOptions, what: str) -> Iterator[Batch]:
    """Yield all rows; the last batch is marked, also if there are no rows."""
    rows_before = 0
    for names, rows, last in _chunks(connection, select(options), options, what):
        columns, faults = text_columns(rows, names)
        positions = _positions(names, columns, options.keys, faults, first=rows_before + 1)
        rows_before += len(rows)
        cursor = {"rows": rows_before, "whole": last}
        yield _batch(names, columns, positions, faults=faults, wanted=range(len(rows)), cursor=cursor, last=last)


def incremental(connection: Connection, options: DatabaseOptions, what: str, token: Cursor | None) -> Iterator[Batch]:
    """Yield the rows from the token's cursor value on that were not yielded before.

    Yield nothing if there are none.
    """
    boundary = Boundary(token)
    statement = select(options, last=boundary.value)
    held: Batch | None = None
    for names, rows, _ in _chunks(connection, statement, options, what):
        columns, faults = text_columns(rows, names)
        values = [row[names.index(str(options.cursor))] for row in rows]
        for at, value in enumerate(values):
            if not isinstance(value, str | int | float):
                faults.setdefault(at, TextFault(str(options.cursor), _cursor_fault(value, str(options.cursor))))
        positions = _positions(names, columns, options.keys, faults, first=1)
        ordered = [at for at, value in enumerate(values) if isinstance(value, str | int | float)]
        texts = list(zip(*columns, strict=True))
        is_new = boundary.find_new([cast("CursorValue", values[at]) for at in ordered], [texts[at] for at in ordered])
        old = {at for at, new in zip(ordered, is_new, strict=True) if not new}
        wanted = [at for at in range(len(rows)) if at not in old]
        if not wanted:
            continue
        if held is not None:
            yield held
        cursor = boundary.token() if boundary.value is not None else {}
        held = _batch(names, columns, positions, faults=faults, wanted=wanted, cursor=cursor, last=False)
    if held is not None:
        yield replace(held, last=True)


def _chunks(
    connection: Connection, statement: Executable, options: DatabaseOptions, what: str
) -> Iterator[tuple[list[str], _Rows, bool]]:
    """Yield names, rows and whether they are the last, at least once; one chunk is read ahead."""
    restart_limit(connection)
    with connection.execute(statement) as result:
        names = list(result.keys())
        check_names(names, [*options.keys, *([options.cursor] if options.cursor is not None else [])], what)
        rows: _Rows = result.fetchmany(options.batch_rows)
        while True:
            restart_limit(connection)
            following: _Rows = result.fetchmany(options.batch_rows) if rows else []
            yield names, rows, not following
            if not following:
                return
            rows = following


def _positions(
    names: Sequence[str],
    columns: Sequence[list[str | None]],
    keys: Sequence[str],
    faults: dict[int, TextFault],
    *,
    first: int,
) -> list[int] | list[str]:
    """Return the position of each row: its key as ``part=4711,rev=B``, or its number.

    A missing key value is a fault.
    """
    count = len(columns[0]) if columns else 0
    if not keys:
        return list(range(first, first + count))
    texts = [columns[names.index(key)] for key in keys]
    for key, values in zip(keys, texts, strict=True):
        for at, value in enumerate(values):
            if value is None:
                faults.setdefault(at, TextFault(key, f"Column {key} has no value, but it is part of the key."))
    named = [
        [f"{key}={'NULL' if value is None else value}" for value in values]
        for key, values in zip(keys, texts, strict=True)
    ]
    return named[0] if len(named) == 1 else list(map(",".join, zip(*named, strict=True)))


def _batch(
    names: Sequence[str],
    columns: Sequence[list[str | None]],
    positions: Sequence[int] | Sequence[str],
    *,
    faults: Mapping[int, TextFault],
    wanted: Sequence[int],
    cursor: Cursor,
    last: bool,
) -> Batch:
    """Return the ``wanted`` rows: those without a fault as records, the others as rejects."""
    frame = pl.DataFrame(
        [pl.Series(name, values, dtype=pl.String) for name, values in zip(names, columns, strict=True)]
    )
    textual = bool(positions) and isinstance(positions[0], str)
    positions_column = pl.Series("position", positions, dtype=pl.String if textual else pl.Int64)
    rejects: list[Reject] = []
    for at in wanted:
        if at in faults:
            record = {name: values[at] for name, values in zip(names, columns, strict=True)}
            rejects.append(build_reject(faults[at], positions[at], record))
    if rejects or len(wanted) < len(positions):
        good = pl.Series(sorted(set(wanted) - faults.keys()), dtype=pl.UInt32)
        frame, positions_column = frame.select(pl.all().gather(good)), positions_column.gather(good)
    return Batch(
        records=frame, positions=positions_column, cursor=cursor, rejects=tuple(rejects), last=last, header=True
    )


def _cursor_fault(value: object, cursor: str) -> str:
    if value is None:
        return f"Column {cursor} has no value, so changes of this row can't be detected."
    return f"Column {cursor} holds a {type(value).__name__}, which has no order."
