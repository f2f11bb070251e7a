"""The entries of a sink as a frame with flat, typed columns."""

from __future__ import annotations

import importlib
import math
from collections.abc import Collection, Iterable
from typing import Any

import polars as pl

from ingestd.client.records import Entry
from ingestd.core.mapping.number import decimal_of

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "key": pl.String,
    "value": pl.String,
    "number": pl.Float64,
    "data_type": pl.String,
    "created_at": pl.Datetime("us", "UTC"),
    "updated_at": pl.Datetime("us", "UTC"),
    "created_by": pl.String,
    "updated_by": pl.String,
}
"""The columns of a frame, in their order."""


def entries_frame(entries: Iterable[Entry], *, numeric: Collection[str]) -> pl.DataFrame:
    """Return the entries with the columns of `SCHEMA`. ``numeric``: the data types with numeric values."""
    rows = [
        (
            one.key,
            one.value,
            _number(one.value) if one.data_type in numeric else None,
            one.data_type,
            one.created_at,
            one.updated_at,
            one.created_by,
            one.updated_by,
        )
        for one in entries
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def pandas_frame(frame: pl.DataFrame) -> Any:
    """Return the frame as a frame of pandas with the same columns. No column has the type ``object``.

    Raises:
        ImportError: pandas is not installed.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas, which is not installed. Install it, or use to_polars()."
        ) from error

    def converted(column: pl.Series) -> Any:
        if column.dtype == pl.String:
            return pandas.Series(column.to_list(), dtype="string")
        if column.dtype == pl.Float64:
            return pandas.Series(column.to_list(), dtype="float64")
        microseconds = column.to_physical().to_numpy().astype("datetime64[us]")
        return pandas.Series(microseconds).dt.tz_localize("UTC")

    return pandas.DataFrame({column.name: converted(column) for column in frame})


def _number(text: str | None) -> float | None:
    """Return the nearest 64-bit floating-point number; None if the text is no number, or the number is out of range."""
    exact = decimal_of(text) if text is not None else None
    if exact is None:
        return None
    number = float(exact)
    return number if math.isfinite(number) and bool(number) == bool(exact) else None
