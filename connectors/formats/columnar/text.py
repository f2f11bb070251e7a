"""Typed columns as text. Each value is written in a form that reads back as the same value."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any
from uuid import UUID

import msgspec
import polars as pl


class Leaf(msgspec.Struct, frozen=True):
    """The kind of the values of a leaf (a value without inner values), if their polars type doesn't show the kind.

    ``kind``: ``uuid``, ``int96`` (an instant without a zone), ``decimal`` (``detail``: its scale), ``duration`` (``detail``: ms,
    us or ns), ``zone`` (``detail``: the time zone of instants); empty: the type shows the kind.
    """

    kind: str = ""
    detail: str = ""


TYPED = Leaf()

_EPOCH_JULIAN_DAY = 2_440_588
_DAY_NS = 86_400_000_000_000
_PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAYS = 95_000_000
"""Only dates within this number of days before or after 1970 have a text, up to the year 262,070."""
_FLOAT16_END = 65_520
"""Numbers from this number on are infinite as a float16."""
_NULL = pl.lit("null")


class ColumnNotText(Exception):
    """A column's type has no text form. The text of the exception names the type."""


def columns_as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every column as text; null stays null. See `text_expression`.

    Raises:
        ColumnNotText: a type has no text form.
    """
    return frame.select(text_expression(name, kind) for name, kind in frame.schema.items())


def text_expression(name: str, kind: pl.DataType, leaves: Sequence[Leaf] = ()) -> pl.Expr:
    """Return the text of a column. ``leaves``: the kinds of its leaves, in order (empty: their types show the kinds).

    A number has the fewest digits that read back as the same number. A decimal has all digits of its scale. Dates and times
    follow ISO 8601, with the time zone if the type has one. A duration is hours, minutes and seconds. A boolean is true or
    false. Lists and structures are JSON, and a map is a list of objects with ``key`` and ``value``. In JSON, booleans,
    integers and finite floats keep their type; everything else is a JSON string, also NaN and inf.

    The text is null for a null, and for a value without a text form.

    Raises:
        ColumnNotText: the type has no text form.
    """
    column = pl.col(name)
    found = iter(leaves) if leaves else repeat(TYPED)
    if isinstance(kind, pl.List | pl.Array | pl.Struct | pl.Map):
        return pl.when(column.is_not_null()).then(_json(column, kind, found)).alias(name)
    return _text(column, kind, next(found, TYPED)).alias(name)


def _json(value: pl.Expr, kind: pl.DataType, leaves: Iterator[Leaf]) -> pl.Expr:
    """Return a value as JSON; null if a part of it has no text form."""
    match kind:
        case pl.Map():
            pairs = pl.List(pl.Struct({"key": kind.key, "value": kind.value}))
            return _json(value.cast(pairs), pairs, leaves)
        case pl.Array():
            items = pl.List(kind.inner)
            return _json(value.arr.to_list(), items, leaves)
        case pl.List():
            item = _json(pl.element(), _instance(kind.inner), leaves)
            text = pl.concat_str(pl.lit("["), value.list.eval(item).list.join(",", ignore_nulls=False), pl.lit("]"))
        case pl.Struct():
            parts: list[pl.Expr] = []
            for field in kind.fields:
                head = msgspec.json.encode(field.name).decode()
                parts += [
                    pl.lit(f"{',' if parts else ''}{head}:"),
                    _json(value.struct.field(field.name), _instance(field.dtype), leaves),
                ]
            text = pl.concat_str(pl.lit("{"), *parts, pl.lit("}"))
        case _:
            text = _json_leaf(value, kind, next(leaves, TYPED))
    return pl.when(value.is_null()).then(_NULL).otherwise(text)


def _json_leaf(value: pl.Expr, kind: pl.DataType, leaf: Leaf) -> pl.Expr:
    text = _text(value, kind, leaf)
    if not leaf.kind and (kind.is_integer() or kind == pl.Boolean):
        return text
    if not leaf.kind and kind.is_float():
        return pl.when(value.is_finite()).then(text).otherwise(pl.concat_str(pl.lit('"'), text, pl.lit('"')))
    # polars can write only structs as JSON, so the text is written as a struct with one field.
    return pl.when(text.is_not_null()).then(
        pl.struct(text.alias("v")).struct.json_encode().str.strip_prefix('{"v":').str.strip_suffix("}")
    )


def _text(value: pl.Expr, kind: pl.DataType, leaf: Leaf) -> pl.Expr:
    if leaf.kind in _MARKED:
        return _MARKED[leaf.kind](value, leaf.detail)
    if isinstance(kind, pl.BaseExtension):
        return _text(value.ext.storage(), _instance(kind.ext_storage()), leaf)
    if kind.is_temporal():
        return _temporal_text(value, kind, leaf.detail)
    match kind:
        case pl.Binary():
            return value.map_batches(_decoded, return_dtype=pl.String)
        case pl.Float16():
            value = value.map_batches(_shortest_float16, return_dtype=pl.Float64)
        case pl.Object() | pl.Unknown():
            raise ColumnNotText(str(kind))
    return value.cast(pl.String)


def _temporal_text(value: pl.Expr, kind: pl.DataType, zone: str) -> pl.Expr:
    """Return the text of dates and times. ``zone``: the time zone of instants (empty: the time zone of their type)."""
    match kind:
        case pl.Datetime():
            value = _within(value, _DAYS * 86_400 * _PER_SECOND[kind.time_unit])
            value = value.dt.convert_time_zone(zone) if zone else value
            return value.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{'%:z' if kind.time_zone else ''}")
        case pl.Duration():
            return _duration_text(value.to_physical(), str(kind.time_unit))
        case pl.Time():
            return _within(value, _DAY_NS, least=0).dt.to_string("%H:%M:%S%.f")
    return _within(value, _DAYS).dt.to_string("%Y-%m-%d")


def _int96_text(value: pl.Expr, _: str) -> pl.Expr:
    """Return the text of INT96 instants, which consist of the nanoseconds of a day and the number of the day."""
    nanoseconds = value.bin.slice(0, 8).bin.reinterpret(dtype=pl.Int64, endianness="little")
    day = value.bin.slice(8, 4).bin.reinterpret(dtype=pl.Int32, endianness="little").cast(pl.Int64) - _EPOCH_JULIAN_DAY
    date = _within(day + nanoseconds // _DAY_NS, _DAYS).cast(pl.Int32).cast(pl.Date).dt.to_string("%Y-%m-%d")
    return pl.concat_str(date, pl.lit("T"), (nanoseconds % _DAY_NS).cast(pl.Time).dt.to_string("%H:%M:%S%.f"))


def _within(value: pl.Expr, end: int, *, least: int | None = None) -> pl.Expr:
    """Return values from ``least`` (None: -``end``) to below ``end``. polars can't write other values, so they become null."""
    number = value.to_physical()
    return pl.when(number.ge(-end if least is None else least) & number.lt(end)).then(value)


def _duration_text(value: pl.Expr, unit: str) -> pl.Expr:
    per_second = _PER_SECOND[unit]
    size = value.cast(pl.Int128).abs()
    seconds, fraction = size // per_second, size % per_second
    digits = len(str(per_second)) - 1
    return pl.concat_str(
        pl.when(value < 0).then(pl.lit("-")).otherwise(pl.lit("")),
        _two_digits(seconds // 3600),
        pl.lit(":"),
        _two_digits(seconds // 60 % 60),
        pl.lit(":"),
        _two_digits(seconds % 60),
        pl.when(fraction > 0)
        .then("." + fraction.cast(pl.String).str.zfill(digits).str.strip_chars_end("0"))
        .otherwise(pl.lit("")),
    )


def _two_digits(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.String).str.zfill(2)


def _each(value: pl.Expr, text: Callable[[Any], str]) -> pl.Expr:
    """Apply ``text`` to each value; null stays null."""
    return value.map_batches(
        lambda values: pl.Series(values.name, [None if one is None else text(one) for one in values], dtype=pl.String),
        return_dtype=pl.String,
    )


def _decoded(values: pl.Series) -> pl.Series:
    """Return bytes as text. Bytes that are not UTF-8, or that hold a zero byte, become null."""
    try:
        texts = values.cast(pl.String)
    except pl.exceptions.ComputeError:
        texts = pl.Series(values.name, [None if one is None else _utf8(one) for one in values], dtype=pl.String)
    return texts.set(texts.str.contains("\0", literal=True), None)


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _shortest_float16(values: pl.Series) -> pl.Series:
    """Return the numbers with the fewest digits that read back as the same float16."""
    return pl.Series(values.name, [None if one is None else _shortest(one) for one in values], dtype=pl.Float64)


def _shortest(number: float) -> float:
    if not math.isfinite(number):
        return number
    candidates = (float(f"{number:.{digits}g}") for digits in range(1, 6))
    own = struct.pack("e", number)
    return next(one for one in candidates if abs(one) < _FLOAT16_END and struct.pack("e", one) == own)


def _decimal_text(data: bytes, scale: int) -> str:
    number = int.from_bytes(data, "big", signed=True)
    digits = str(abs(number)).zfill(scale + 1)
    whole, fraction = (digits[:-scale], f".{digits[-scale:]}") if scale else (digits, "")
    return f"{'-' if number < 0 else ''}{whole}{fraction}"


_MARKED: Mapping[str, Callable[[pl.Expr, str], pl.Expr]] = {
    "int96": _int96_text,
    "uuid": lambda value, _: _each(value, lambda data: str(UUID(bytes=data))),
    "decimal": lambda value, scale: _each(value, lambda data: _decimal_text(data, int(scale))),
    "duration": _duration_text,
}
"""By kind of leaf: the function that returns the text of values if their type in polars doesn't show the kind."""


def _instance(kind: Any) -> pl.DataType:
    """Return an inner type as an instance, because polars also accepts a class as an inner type."""
    instance: pl.DataType = kind() if isinstance(kind, type) else kind
    return instance
