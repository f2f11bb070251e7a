"""Batches of the rows of one SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from connectors.database.boundary import Boundary, CursorValue
from connectors.database.options import DatabaseOptions
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect, TextFault
from connectors.database.statement import source
from ingestd.sdk import Batch, Cursor, Reject, SourceBroken

_CLASSES = {"integer": int, "real": float, "text": str}


def snapshot(session: ReadSession, dialect: SqlDialect, options: DatabaseOptions) -> Iterator[Batch]:
    """Yield all rows; the last batch is marked, also if there are no rows."""
    from_ = source(dialect, table=options.table, query=options.query)
    columns = named_columns(session.columns(from_), options)
    rows = 0
    held: Batch | None = None
    for frame in session.frames(columns, from_):
        if held is not None and not frame.records.height:
            continue
        if held is not None:
            yield held
        first, rows = rows + 1, rows + frame.records.height
        held = _batch(frame, options.keys, first=first, cursor={"rows": rows, "whole": False})
    if held is not None:
        yield replace(held, cursor={"rows": rows, "whole": True}, last=True)


def incremental(
    session: ReadSession, dialect: SqlDialect, options: DatabaseOptions, token: Cursor | None
) -> Iterator[Batch]:
    """Yield the rows from the token's cursor value on that were not yielded before.

    Yield nothing if there are none.
    """
    boundary = Boundary(token)
    cursor = str(options.cursor)
    from_ = source(dialect, table=options.table, query=options.query)
    columns = named_columns(session.columns(from_), options)
    value, names = dialect.quote(cursor), [column.name for column in columns]
    kind = ResultColumn(name=_unused(names), type="text", expression=dialect.storage_class.format(value))
    order = ", ".join(dialect.quote(name) for name in dict.fromkeys([cursor, *options.keys]))
    after = "" if boundary.value is None else f"WHERE {value} >= {dialect.placeholder()} "
    parameters = () if boundary.value is None else (boundary.value,)
    held: Batch | None = None
    for frame in session.frames([*columns, kind], from_, rest=f"{after}ORDER BY {order}", parameters=parameters):
        batch = _new_rows(frame, kind.name, boundary, options)
        if batch is None:
            continue
        if held is not None:
            yield held
        held = batch
    if held is not None:
        yield replace(held, last=True)


def named_columns(columns: list[ResultColumn], options: DatabaseOptions) -> list[ResultColumn]:
    """Return the columns.

    Raises:
        SourceBroken: two names are equal, or a configured column is missing.
    """
    what = f"Table {options.table}" if options.table is not None else "The query"
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceBroken(f"{what} has more than one column {', '.join(twice)}: give each its own name with AS.")
    needed = [*options.keys, *([options.cursor] if options.cursor is not None else [])]
    missing = [name for name in needed if name not in names]
    if missing or not names:
        raise SourceBroken(f"{what} has no column {', '.join(missing)}; it has {', '.join(names) or 'no columns'}.")
    return columns


def _new_rows(frame: Frame, kind: str, boundary: Boundary, options: DatabaseOptions) -> Batch | None:
    """Return the batch of the rows that are new to the boundary; None: there are none."""
    cursor = str(options.cursor)
    kinds = frame.records.get_column(kind).to_list()
    frame = replace(frame, records=frame.records.drop(kind))
    values: list[CursorValue | None] = [
        _CLASSES[name](value) if name in _CLASSES and value is not None else None
        for name, value in zip(kinds, frame.records.get_column(cursor), strict=True)
    ]
    faults = dict(frame.faults)
    for at, value in enumerate(values):
        if value is None:
            faults.setdefault(at, TextFault(cursor, _cursor_fault(str(kinds[at]), cursor)))
    ordered = [(at, value) for at, value in enumerate(values) if value is not None]
    texts = frame.records.rows()
    is_new = boundary.find_new([value for _, value in ordered], [texts[at] for at, _ in ordered])
    old = {at for (at, _), new in zip(ordered, is_new, strict=True) if not new}
    if len(old) == len(values):
        return None
    token = boundary.token() if boundary.value is not None else {}
    return _batch(replace(frame, faults=faults), options.keys, first=1, cursor=token, skipped=old)


def _batch(
    frame: Frame, keys: Sequence[str], *, first: int, cursor: Cursor, skipped: frozenset[int] | set[int] = frozenset()
) -> Batch:
    """Return the rows that are not ``skipped``: those without a fault as records, the others as rejects."""
    records, positions = frame.records, _positions(frame.records, keys, first=first)
    faults = _key_faults(frame, keys)
    rejects = tuple(
        Reject(position=positions[at], reason=fault.reason, field=fault.field, record=records.row(at, named=True))
        for at, fault in sorted(faults.items())
        if at not in skipped
    )
    if faults or skipped:
        good = [at for at in range(records.height) if at not in faults and at not in skipped]
        records, positions = records[good], positions[good]
    return Batch(records=records, positions=positions, cursor=cursor, rejects=rejects, header=True)


def _positions(records: pl.DataFrame, keys: Sequence[str], *, first: int) -> pl.Series:
    """Return the position of each row: its key as ``part=4711,rev=B``, or its number."""
    if not keys:
        return pl.int_range(first, first + records.height, dtype=pl.Int64, eager=True).alias("position")
    parts = [pl.concat_str(pl.lit(f"{key}="), pl.col(key).fill_null("NULL")) for key in keys]
    return records.select(pl.concat_str(parts, separator=",").alias("position")).to_series()


def _key_faults(frame: Frame, keys: Sequence[str]) -> dict[int, TextFault]:
    """Return the faults of the frame with those of rows without a key value."""
    faults = dict(frame.faults)
    for key in keys:
        values = frame.records.get_column(key)
        if values.null_count():
            fault = TextFault(key, f"Column {key} has no value, but it is part of the key.")
            for row in values.is_null().arg_true():
                faults.setdefault(row, fault)
    return faults


def _cursor_fault(kind: str, cursor: str) -> str:
    if kind == "blob":
        return f"Column {cursor} holds bytes, which have no order."
    return f"Column {cursor} has no value, so changes of this row can't be detected."


def _unused(names: Sequence[str]) -> str:
    """Return a column name that is not among ``names``."""
    name = "ingestd_kind"
    while name in names:
        name += "_"
    return name
