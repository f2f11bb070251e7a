"""Typed columns as text. Each value is written in a form that reads back as the same value."""

from __future__ import annotations

import polars as pl


class ColumnNotText(Exception):
    """A column has a type without a text form. ``name`` and ``type``: those of the column."""

    def __init__(self, name: str, kind: pl.DataType | pl.datatypes.DataTypeClass) -> None:
        self.name = name
        self.type = str(kind)
        super().__init__(f"column {name!r} holds {kind}, which has no text form")


def columns_as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every column as text; null stays null.

    A number has the fewest digits that read back as the same number, a decimal all digits of its scale. Dates and times follow
    ISO 8601, with the time zone if there is one. A boolean is true or false, a list or a structure is JSON.

    Raises:
        ColumnNotText: a column holds bytes, durations or objects.
    """
    return frame.select(_expression(name, kind) for name, kind in frame.schema.items())


def _expression(name: str, kind: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(kind, pl.Datetime):
        return column.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{'%:z' if kind.time_zone else ''}")
    if isinstance(kind, (pl.List, pl.Array, pl.Struct)):
        if _has_no_text(kind):
            raise ColumnNotText(name, kind)
        return (
            pl.struct(column.alias("v"))
            .struct.json_encode()
            .str.strip_prefix('{"v":')
            .str.strip_suffix("}")
            .pipe(lambda text: pl.when(column.is_null()).then(None).otherwise(text))
            .alias(name)
        )
    if _has_no_text(kind):
        raise ColumnNotText(name, kind)
    return column.cast(pl.String)


def _has_no_text(kind: pl.DataType | pl.datatypes.DataTypeClass) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_has_no_text(field.dtype) for field in kind.fields)
    if isinstance(kind, pl.List | pl.Array):
        return _has_no_text(kind.inner)
    return isinstance(kind, pl.Binary | pl.Duration | pl.Object) or kind in {pl.Binary, pl.Duration, pl.Object}
