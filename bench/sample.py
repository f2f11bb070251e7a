"""The measured file: six columns of parts in random order. Three values in ten are quoted and contain a comma.

Each row is computed from its number, so received values can be checked without the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

COLUMNS = ("part_number", "property", "value", "unit", "revision", "changed")
KEY = "{part_number}/{property}"
VALUE = "{value} {unit} {revision}"
USED = ("part_number", "property", "value", "unit", "revision")
"""The fields of the mapping, which a reading has to hash."""

_ORDER_SEED = 20_260
_PROPERTIES = ("mass", "length", "finish", "fit")
_CHUNK = 1_000_000
_NOTHING: Mapping[int, str] = {}


def write_csv(path: Path, rows: int, *, order: int = 0, revised: Mapping[int, str] = _NOTHING) -> None:
    """Write ``rows`` parts. ``order``: the number of the shuffle; ``revised``: the value of some rows, by row number."""
    numbers = _numbers(rows, order)
    with path.open("wb") as file:
        for start in range(0, rows, _CHUNK):
            frame = _frame(numbers[start : start + _CHUNK], revised)
            frame.write_csv(file, include_header=start == 0)


def write_ndjson(path: Path, rows: int) -> None:
    """Write the entries of `write_csv` as JSON lines with key and value, which need no mapping."""
    numbers = _numbers(rows, 0)
    with path.open("wb") as file:
        for start in range(0, rows, _CHUNK):
            entries(_frame(numbers[start : start + _CHUNK], _NOTHING)).write_ndjson(file)


def write_objects(path: Path, rows: int) -> None:
    """Write the rows of `write_csv` as JSON lines with all fields."""
    numbers = _numbers(rows, 0)
    with path.open("wb") as file:
        for start in range(0, rows, _CHUNK):
            frame = _frame(numbers[start : start + _CHUNK], _NOTHING)
            frame.with_columns(pl.col("unit").fill_null("")).write_ndjson(file)


def read_entries(path: Path) -> pl.DataFrame:
    """Return all entries of a CSV file: columns key and value, in the order of the file."""
    return entries(pl.read_csv(path, infer_schema=False))


def entries(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the columns key and value, computed from the columns of the file."""
    return frame.select(
        pl.concat_str(["part_number", "property"], separator="/").alias("key"),
        pl.concat_str(["value", pl.col("unit").fill_null(""), "revision"], separator=" ").alias("value"),
    )


def wrong_values(sampled: Collection[tuple[str, str | None]], rows: int) -> list[str]:
    """Return the keys of received entries with another value than in the file."""
    numbers = pl.Series([int(key[1:9]) for key, _ in sampled], dtype=pl.Int64)
    if numbers.is_empty():
        return []
    expected = dict(entries(_frame(numbers.filter(numbers < rows), _NOTHING)).iter_rows())
    return [key for key, value in sampled if expected.get(key) != value]


def _numbers(rows: int, order: int) -> pl.Series:
    return pl.int_range(rows, eager=True).shuffle(seed=_ORDER_SEED + order)


def _frame(numbers: pl.Series, revised: Mapping[int, str]) -> pl.DataFrame:
    n = pl.col("n")
    plain = pl.concat_str([(n % 4096).cast(pl.String), pl.lit("."), (n % 97).cast(pl.String).str.zfill(2)])
    quoted = pl.concat_str([pl.lit("M"), (n % 24 + 3).cast(pl.String), pl.lit("x1.25, zinc plated")])
    by_hand = (
        n.replace_strict(dict(revised), default=None, return_dtype=pl.String) if revised else pl.lit(None, pl.String)
    )
    return pl.DataFrame({"n": numbers}).select(
        pl.concat_str([pl.lit("P"), n.cast(pl.String).str.zfill(8)]).alias("part_number"),
        pl.lit(pl.Series(_PROPERTIES)).gather(n % len(_PROPERTIES)).alias("property"),
        pl.coalesce(by_hand, pl.when(n % 10 < 3).then(quoted).otherwise(plain)).alias("value"),
        # A null is written as an empty field, but an empty text as "".
        pl.when(n % 10 >= 3).then(pl.lit("kg")).alias("unit"),
        pl.lit(pl.Series(("A", "B", "C"))).gather(n % 3).alias("revision"),
        pl.concat_str([pl.lit("2026-0"), (n % 9 + 1).cast(pl.String), pl.lit("-1"), (n % 10).cast(pl.String)]).alias(
            "changed"
        ),
    )
