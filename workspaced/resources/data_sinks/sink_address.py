"""How a path names a sink, and how an entry's id tells where its row is. Pure (contract S5, S7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workspaced.core.text import as_uuid

_VISIBLE = re.compile(r"([A-Za-z]{1,8})-([1-9][0-9]{0,8})", re.ASCII)

ID_MULTIPLIER = 2_654_435
"""Odd, so that multiplying by it is reversible modulo 2**48; small enough that SQLite's 64 bits hold the product."""

_MODULUS = 1 << 48
_INVERSE = pow(ID_MULTIPLIER, -1, _MODULUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkName:
    """A sink as a path names it: by ``id`` or, where that is empty, by ``serial``."""

    id: str = ""
    serial: int = 0


def sink_name(segment: str, *, prefix: str) -> SinkName | None:
    """A UUID or a visible id with this service's prefix, in any case; None for what can't be a sink ("list")."""
    if found := as_uuid(segment):
        return SinkName(id=found)
    match = _VISIBLE.fullmatch(segment)
    if match and match[1].upper() == prefix.upper():
        return SinkName(serial=int(match[2]))
    return None


def visible_id(serial: int, *, prefix: str) -> str:
    """``SNK-7``."""
    return f"{prefix}-{serial}"


def id_digits(number: int, *, id_offset: int) -> str:
    """The last twelve digits of the id that this service makes for a row."""
    return f"{(number * ID_MULTIPLIER + id_offset) % _MODULUS:012x}"


def row_number(entry_id: str, *, id_offset: int) -> int:
    """The row that an id made by this service belongs to: its last twelve digits are number times multiplier plus id_offset.

    For an id from elsewhere the result is some other number; the row there, if any, has another id.
    """
    return (int(entry_id[-12:], 16) - id_offset) * _INVERSE % _MODULUS
