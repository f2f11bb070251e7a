"""Conversion of OPC UA values to exact text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from ingestd.sdk import RecordUnreadable

MOST_CHARACTERS = 1_000_000
"""The maximum number of characters of a value's text."""

_FIRST_YEAR = 1601
"""The first year that an OPC UA time can have. A time at the start of this year means that no time is known."""


def value_text(variant: Any) -> str | None:
    """Return the text of an ``asyncua.ua.Variant``; None for a null value.

    A number has the shortest text that can be parsed to the same number. Times are ISO 8601 in UTC, bytes are hexadecimal,
    and arrays are JSON.

    Raises:
        RecordUnreadable: the value can't be written as text (a structure, for example), or the text is too long.
    """
    if variant is None or variant.Value is None:
        return None
    kind = variant.VariantType.name
    text = (
        json.dumps(_items(kind, variant.Value), ensure_ascii=False) if variant.is_array else _text(kind, variant.Value)
    )
    if text is not None and len(text) > MOST_CHARACTERS:
        raise RecordUnreadable(f"has {len(text)} characters, more than {MOST_CHARACTERS}")
    return text


def time_text(time: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC; None if no time is known."""
    if time is None or time.year <= _FIRST_YEAR:
        return None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _items(kind: str, value: Any) -> Any:
    """Return an array as JSON data. Integers and booleans are kept; every other value becomes its text."""
    if isinstance(value, list):
        return [_items(kind, one) for one in value]
    return value if isinstance(value, int) else _text(kind, value)


def _text(kind: str, value: Any) -> str | None:
    if value is None:
        return None
    try:
        return _TEXTS.get(kind, lambda one: str(int(one)))(value)
    except (TypeError, ValueError, AttributeError):
        raise RecordUnreadable(f"is a value of the type {kind}, which has no text") from None


def _float(value: float) -> str:
    """Return the shortest text that can be parsed to the same float32."""
    return _double(float(pl.Series([value], dtype=pl.Float32).cast(pl.String).item()))


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _structure(value: Any) -> str:
    raise TypeError(type(value).__name__)


_TEXTS: Mapping[str, Callable[[Any], str | None]] = {
    "Boolean": lambda value: "true" if value else "false",
    "Float": _float,
    "Double": _double,
    "String": str,
    "XmlElement": str,
    "Guid": str,
    "DateTime": time_text,
    "ByteString": lambda value: bytes(value).hex(),
    "LocalizedText": lambda value: value.Text,
    "QualifiedName": lambda value: value.Name,
    "NodeId": lambda value: str(value.to_string()),
    "ExpandedNodeId": lambda value: str(value.to_string()),
    "StatusCode": lambda value: str(value.name),
    "ExtensionObject": _structure,
    "DataValue": _structure,
    "Variant": _structure,
    "DiagnosticInfo": _structure,
}
