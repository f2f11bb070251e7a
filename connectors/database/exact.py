"""Rows as columns of exact text, and the rows that have no exact text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ingestd.sdk import Reject, SourceBroken

_NONE = type(None)
_NUMBERED = re.compile(r":\d+$")


class TextFault(NamedTuple):
    """Why a row is rejected, and the column with the fault."""

    field: str
    reason: str


def to_text(value: object) -> str | None:
    """Return a value as its database writes it.

    A float with the fewest digits that read back as the same number.

    Raises:
        ValueError: it is no text, number or null. The message is the end of a sentence that starts with the column.
    """
    match value:
        case None:
            return None
        case str():
            _check_utf8(value)
            return value
        case int():
            return str(value)
        case float():
            return repr(value)
        case bytes() | bytearray() | memoryview():
            raise ValueError("holds binary data, which no entry can; cast or leave it out in a query")
        case _:
            raise ValueError(f"holds a {type(value).__name__}, which has no exact text; cast it to text in a query")


def text_columns(
    rows: Sequence[Sequence[Any]], names: Sequence[str]
) -> tuple[list[list[str | None]], dict[int, TextFault]]:
    """Return the columns of rows, with null for a value without text, and the first fault of each row."""
    faults: dict[int, TextFault] = {}
    columns: list[list[str | None]] = []
    raw = zip(*rows, strict=True) if rows else ((),) * len(names)
    for name, values in zip(names, raw, strict=True):
        try:
            columns.append(_column(values))
        except ValueError:
            columns.append(_with_faults(values, name, faults))
    return columns, faults


def _column(values: Sequence[Any]) -> list[str | None]:
    types = set(map(type, values))
    if types == {int}:
        return list(map(str, values))
    if types <= {str, _NONE}:
        _check_utf8("".join(value for value in values if value) if _NONE in types else "".join(values))
        return list(values)
    return [to_text(value) for value in values]


def _with_faults(values: Sequence[Any], name: str, faults: dict[int, TextFault]) -> list[str | None]:
    texts: list[str | None] = []
    for row, value in enumerate(values):
        try:
            texts.append(to_text(value))
        except ValueError as error:
            texts.append(None)
            faults.setdefault(row, TextFault(name, f"Column {name} {error}."))
    return texts


def _check_utf8(value: str) -> None:
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds text that is not UTF-8") from None


def check_names(names: Sequence[str], needed: Sequence[str], what: str) -> None:
    """Check the columns' names.

    Raises:
        SourceBroken: two names are equal, or a configured column is missing.
    """
    # SQLite renames the second column a of a query to a:1.
    plain = [_NUMBERED.sub("", name) if _NUMBERED.sub("", name) in names else name for name in names]
    twice = sorted({name for name in plain if plain.count(name) > 1})
    if twice:
        raise SourceBroken(f"{what} has more than one column {', '.join(twice)}: give each its own name with AS.")
    missing = [name for name in needed if name not in names]
    if missing:
        raise SourceBroken(f"{what} has no column {', '.join(missing)}; it has {', '.join(names)}.")


def build_reject(fault: TextFault, position: int | str, record: dict[str, str | None]) -> Reject:
    """Return the reject of a row."""
    return Reject(position=position, reason=fault.reason, field=fault.field, record=record)
