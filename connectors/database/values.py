"""The settings of values that are the same for all databases: bytes that are rejected, and NaN."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from connectors.database.options import DatabaseOptions
from connectors.database.port import Frame, ResultColumn, TextFault

BINARY = "holds binary data, which no entry can; set binary, or cast or leave it out in a query"
NOT_FINITE = "is not a finite number (nan: reject)"
_NOT_FINITE = ["NaN", "Infinity", "-Infinity"]


def apply_settings(
    frame: Frame, columns: Sequence[ResultColumn], options: DatabaseOptions, *, native_binary: bool
) -> Frame:
    """Return the frame with bytes and NaN as the settings state. ``native_binary``: the database writes bytes as text."""
    reject_bytes = options.binary == "reject" or (options.binary == "keep" and not native_binary)
    changed: list[pl.Series] = []
    faults = dict(frame.faults)
    for column in columns:
        values = frame.records.get_column(column.name)
        if column.kind == "binary" and reject_bytes:
            wrong, words = values.is_not_null(), BINARY
        elif column.kind == "number" and options.nan != "keep":
            wrong, words = values.is_in(_NOT_FINITE).fill_null(value=False), NOT_FINITE
        else:
            continue
        if not wrong.any():
            continue
        changed.append(pl.select(pl.when(~wrong).then(values).alias(column.name)).to_series())
        if column.kind == "binary" or options.nan == "reject":
            for row in wrong.arg_true():
                faults.setdefault(row, TextFault(column.name, f"Column {column.name} {words}."))
    return Frame(records=frame.records.with_columns(changed), faults=faults) if changed else frame
