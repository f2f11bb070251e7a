"""Typed columns as text. Each value is written in the one form that reads back as the same value."""

from __future__ import annotations

import polars as pl
from polars.datatypes import DataType, DataTypeClass

NESTED = (pl.List, pl.Array, pl.Struct)


class ColumnNotText(Exception):
    """A column of a type that has no text: ``name`` and ``type`` say which."""

    def __init__(self, name: str, kind: DataType | DataTypeClass) -> None:
        self.name = name
        self.type = str(kind)
        super().__init__(f"column {name!r} holds {kind}, which is no text and no number")


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with every column as text; a null stays one.

    Numbers are written as short as they read back, a decimal with all digits of its scale; dates and instants as ISO 8601
    writes them, an instant with its zone; a truth value as true or false; a list or a structure as JSON.

    Raises:
        NoText: a column holds bytes, durations or objects.
    """
    return frame.select(_expression(name, kind) for name, kind in frame.schema.items())


def _expression(name: str, kind: DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(kind, pl.Datetime):
        return column.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{'%:z' if kind.time_zone else ''}")
    if isinstance(kind, NESTED):
        if _holds_no_text(kind):
            raise ColumnNotText(name, kind)
        return (
            pl.struct(column.alias("v"))
            .struct.json_encode()
            .str.strip_prefix('{"v":')
            .str.strip_suffix("}")
            .pipe(lambda text: pl.when(column.is_null()).then(None).otherwise(text))
            .alias(name)
        )
    if _holds_no_text(kind):
        raise ColumnNotText(name, kind)
    return column.cast(pl.String)


def _holds_no_text(kind: DataType | DataTypeClass) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_holds_no_text(field.dtype) for field in kind.fields)
    if isinstance(kind, pl.List | pl.Array):
        return _holds_no_text(kind.inner)
    return isinstance(kind, pl.Binary | pl.Duration | pl.Object) or kind in {pl.Binary, pl.Duration, pl.Object}
