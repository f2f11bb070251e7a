"""Conversion of database rows to values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def from_row(kind: type[T], row: Sequence[Any], **others: Any) -> T:
    """Return a struct with the columns of a row as its first members. ``others``: members to add or to replace."""
    members = dict(zip(kind.__struct_fields__[: len(row)], row, strict=True))
    return kind(**members | others)
