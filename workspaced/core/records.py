"""Conversion of stored rows to response records: members of the same name are copied. Performs no I/O."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from workspaced.core.json_schema import Timestamp
from workspaced.core.timestamps import stamp

RecordT = TypeVar("RecordT", bound=msgspec.Struct)


def record_from(record_type: type[RecordT], row: object, **others: Any) -> RecordT:
    """Return the record of a row. ``others`` has the members that the row lacks, or has in a different form.

    The type of the member decides: milliseconds become a timestamp, JSON text `msgspec.Raw`, and a number a boolean.
    """
    values = {name: form(getattr(row, name)) for name, form in _forms(record_type) if name not in others}
    return record_type(**values, **others)


@cache
def _forms(record_type: type[msgspec.Struct]) -> list[tuple[str, Callable[[Any], Any]]]:
    hints = get_type_hints(record_type, include_extras=True)
    return [(name, _form_of(hints[name])) for name in record_type.__struct_fields__]


def _form_of(hint: Any) -> Callable[[Any], Any]:
    if hint == Timestamp:
        return stamp
    if Timestamp in get_args(hint):
        return optional_stamp
    if get_origin(hint) is Annotated:
        kind = get_args(hint)[0]
        return (lambda text: msgspec.Raw(text.encode())) if kind is msgspec.Raw else _form_of(kind)
    return bool if hint is bool else lambda value: value


def optional_stamp(instant: int | None) -> str | None:
    """Return the timestamp of an instant in milliseconds since 1970; None without an instant."""
    return None if instant is None else stamp(instant)
