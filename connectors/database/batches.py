"""Batches of the rows of one SELECT."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import polars as pl
from polars.selectors import by_name

from connectors.database.options import DatabaseOptions
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect, TextFault
from ingestd.sdk import Batch, Cursor, Reject, SourceBroken


def snapshot(session: ReadSession, dialect: SqlDialect) -> Iterator[Batch]:
    """Yield all rows of the table or query, in at least one batch. The last batch is marked with ``last``."""
    options, rows = dialect.options, 0
    held: Batch | None = None
    for frame in session.frames(named_columns(session, dialect), dialect.source):
        if held is not None and not frame.records.height:
            continue
        if held is not None:
            yield held
        first, rows = rows + 1, rows + frame.records.height
        held = batch_of(frame, options.keys, first=first, cursor={"rows": rows, "whole": False})
    if held is not None:
        yield dataclasses.replace(held, cursor={"rows": rows, "whole": True}, last=True)


def batch_of(frame: Frame, keys: Sequence[str], *, first: int, cursor: Cursor) -> Batch:
    """Return the batch of a frame. Rows without a fault become records, rows with a fault become rejects.

    ``first``: the number of the frame's first row.
    """
    records, positions = frame.records, positions_of(frame.records, keys, first=first)
    faults = _key_faults(frame, keys)
    rejects = tuple(
        Reject(position=positions[at], reason=fault.reason, field=fault.field, record=records.row(at, named=True))
        for at, fault in sorted(faults.items())
    )
    if faults:
        good = [at for at in range(records.height) if at not in faults]
        records, positions = records[good], positions[good]
    return Batch(records=records, positions=positions, cursor=cursor, rejects=rejects, header=True)


def described(options: DatabaseOptions) -> str:
    """Return the beginning of a sentence that names the table or the query."""
    return f"Table {options.table}" if options.table is not None else "The query"


def named_columns(session: ReadSession, dialect: SqlDialect) -> list[ResultColumn]:
    """Return the columns of the configured table or query.

    Raises:
        SourceBroken: two names are equal, or a configured column is missing.
    """
    options, columns = dialect.options, session.columns(dialect.source)
    what = described(options)
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceBroken(f"{what} has more than one column {', '.join(twice)}: use different names, with AS.")
    needed = [*options.keys, *([options.cursor] if options.cursor is not None else [])]
    missing = [name for name in needed if name not in names]
    if missing or not names:
        raise SourceBroken(f"{what} has no column {', '.join(missing)}; it has {', '.join(names) or 'no columns'}.")
    return columns


def positions_of(records: pl.DataFrame, keys: Sequence[str], *, first: int) -> pl.Series:
    """Return each row's position: a text that is unique for its key, such as ``part=4711,rev=B``; without keys, its number."""
    if not keys:
        return pl.int_range(first, first + records.height, dtype=pl.Int64, eager=True).alias("position")
    ambiguous = '^NULL$|^"' if len(keys) == 1 else '^NULL$|^"|,'
    parts = [pl.concat_str(pl.lit(f"{key}="), _key_text(key, ambiguous)) for key in keys]
    return records.select(pl.concat_str(parts, separator=",").alias("position")).to_series()


def _key_text(key: str, ambiguous: str) -> pl.Expr:
    """Return the text of a key column's values, in quotes where the plain text is ambiguous; ``NULL`` if it is missing."""
    value = by_name(key).as_expr()
    quoted = pl.concat_str(pl.lit('"'), value.str.replace_all('"', '""', literal=True), pl.lit('"'))
    return pl.when(value.str.contains(ambiguous)).then(quoted).otherwise(value).fill_null("NULL")


def _key_faults(frame: Frame, keys: Sequence[str]) -> dict[int, TextFault]:
    """Return the faults of the frame, and a fault for each row with a missing key value."""
    faults = dict(frame.faults)
    for key in keys:
        values = frame.records.get_column(key)
        if values.null_count():
            fault = TextFault(key, f"Column {key} has no value, but it is part of the key.")
            for row in values.is_null().arg_true():
                faults.setdefault(row, fault)
    return faults
