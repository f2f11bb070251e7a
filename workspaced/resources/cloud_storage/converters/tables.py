"""Types of columns, and previews of tables. A column stays text if a type would change a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl

from ingestd.workbooks.references import column_letters
from ingestd.workbooks.sheet import cell_text
from workspaced.resources.cloud_storage.converters.results import Outputs

PARQUET: Final = "application/vnd.apache.parquet"
JSON: Final = "application/json"
_PREVIEW_ROWS = 100
_PREVIEW_COLUMNS = 100
_PREVIEW_TEXT = 1_000
_EXACT_INTEGERS = 2**53


def column_names(first: Sequence[object], *, more: bool) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether they come from the first row.

    The first row has the names if more rows follow (``more``), and if its cells are different texts, not numbers and not empty.
    Otherwise the names are A, B, C … as in spreadsheets.
    """
    texts = [cell.strip() for cell in first if isinstance(cell, str)]
    distinct = len({text.casefold() for text in texts}) == len(first)
    if more and first and distinct and all(text and not _is_number(text) for text in texts):
        return texts, True
    return letters(len(first)), False


def letters(count: int) -> list[str]:
    """Return the first ``count`` of the names A to Z, AA, AB and so on."""
    return list(map(column_letters, range(count)))


def of_cells(name: str, cells: Sequence[Any]) -> pl.Series:
    """Return a column of typed cells; an empty cell is None. Cells of several types become texts."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        whole = all(cell is None or (float(cell).is_integer() and abs(cell) < _EXACT_INTEGERS) for cell in cells)
        if whole:
            return pl.Series(name, [None if cell is None else int(cell) for cell in cells], dtype=pl.Int64)
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, cells, dtype=pl.Boolean)
    if kinds == {date}:
        return pl.Series(name, cells, dtype=pl.Date)
    if kinds == {datetime}:
        return pl.Series(name, cells, dtype=pl.Datetime("ms"))
    return pl.Series(name, [None if cell is None else cell_text(cell) for cell in cells], dtype=pl.String)


def typed(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Convert each text column to a type that loses nothing: every value, converted back to text, must be unchanged.

    For example, 1.5 can become a number, but 1.50 stays text; 417 can become a number, but 00417 stays text. This function reads
    the table once. The evaluation of the result reads the table again.
    """
    columns = frame.collect_schema().names()
    tests = [
        read(column).cast(pl.String).eq_missing(pl.col(column)).all().alias(f"{index}/{kind}")
        for index, column in enumerate(columns)
        for kind, read in _READINGS.items()
    ]
    filled = [pl.col(column).is_not_null().any().alias(f"{index}") for index, column in enumerate(columns)]
    found = frame.select(*tests, *filled).collect(engine="streaming").row(0, named=True)
    readings = [
        next((read(column) for kind, read in _READINGS.items() if found[f"{index}/{kind}"]), None)
        for index, column in enumerate(columns)
        if found[f"{index}"]
    ]
    return frame.with_columns([reading for reading in readings if reading is not None])


_READINGS: Final[Mapping[str, Callable[[str], pl.Expr]]] = {
    "integer": lambda column: pl.col(column).cast(pl.Int64, strict=False),
    "number": lambda column: pl.col(column).cast(pl.Float64, strict=False),
    "date": lambda column: pl.col(column).str.to_date("%Y-%m-%d", strict=False),
    "boolean": lambda column: pl.when(pl.col(column).is_in(["true", "false"])).then(pl.col(column).eq("true")),
}
"""For each type, the expression that converts the texts of a column. A text that can't be converted becomes null."""


def write_preview(parquet: Path, outputs: Outputs, name: str, **more: object) -> None:
    """Write the first rows and columns of a table as JSON."""
    table = pl.scan_parquet(parquet, glob=False)
    schema = table.collect_schema()
    count = table.select(pl.len()).collect().item()
    shown = table.select(schema.names()[:_PREVIEW_COLUMNS]).head(_PREVIEW_ROWS).collect()
    preview = {
        **more,
        "columns": [{"name": column, "type": _type_name(kind)} for column, kind in shown.schema.items()],
        "rows": [[_shortened(cell) for cell in row] for row in shown.iter_rows()],
        "rowCount": count,
        "columnCount": len(schema),
        "truncated": count > len(shown) or len(schema) > shown.width,
    }
    outputs.place(name, JSON).write_bytes(msgspec.json.encode(preview))


def _type_name(kind: pl.DataType) -> str:
    if kind.is_integer():
        return "integer"
    if kind.is_float():
        return "number"
    names = {pl.Boolean: "boolean", pl.Date: "date", pl.Datetime: "datetime"}
    return next((name for type_, name in names.items() if kind == type_), "text")


def _shortened(cell: Any) -> Any:
    return f"{cell[:_PREVIEW_TEXT]}…" if isinstance(cell, str) and len(cell) > _PREVIEW_TEXT else cell


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
