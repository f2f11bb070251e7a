"""Names of sinks in paths, and row numbers in the ids of entries (contract S5, S7). Performs no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workspaced.core.text import as_uuid

_VISIBLE = re.compile(r"([A-Za-z]{1,8})-([1-9][0-9]{0,8})", re.ASCII)

ID_MULTIPLIER = 2_654_435
"""An odd number, so that multiplication modulo 2**48 has an inverse. Products with row numbers fit into SQLite's 64 bits."""

_MODULUS = 1 << 48
_INVERSE = pow(ID_MULTIPLIER, -1, _MODULUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkName:
    """The name of a sink in a path: its ``id``, or its ``serial`` if ``id`` is empty."""

    id: str = ""
    serial: int = 0


def sink_name(segment: str, *, prefix: str) -> SinkName | None:
    """Return the sink name in a path segment: a UUID, or a visible id with the service's prefix. None: any other text."""
    if found := as_uuid(segment):
        return SinkName(id=found)
    match = _VISIBLE.fullmatch(segment)
    if match and match[1].upper() == prefix.upper():
        return SinkName(serial=int(match[2]))
    return None


def visible_id(serial: int, *, prefix: str) -> str:
    """Return the visible id of a sink, such as ``SNK-7``."""
    return f"{prefix}-{serial}"


def id_digits(number: int, *, id_offset: int) -> str:
    """Return the last twelve digits of the id that the service makes for a row."""
    return f"{(number * ID_MULTIPLIER + id_offset) % _MODULUS:012x}"


def row_number(entry_id: str, *, id_offset: int) -> int:
    """Return the row number of an id that the service made; the inverse of `id_digits`.

    For an id that a client chose, the number is arbitrary: callers must compare the id of the row with this number.
    """
    return (int(entry_id[-12:], 16) - id_offset) * _INVERSE % _MODULUS
