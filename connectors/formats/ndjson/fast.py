"""The fast path of NDJSON: reads a block of flat objects as columns, not field by field.

Values keep the characters of the source. The decoder's hook returns a float as its characters. An integer prints as it was
written, because JSON allows no leading zeros and no plus sign. ``-0`` is the exception. A structure made for the names of the
first line decodes twice as fast as a dictionary. If a line has another name, dictionaries are used for the block. This
module reads no block with a line that repeats a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from connectors.formats.ndjson.exact import find_unsure, require_unique_names

_VALUE = msgspec.json.Decoder(float_hook=str)
_MINUS_ZERO = re.compile(rb"-0(?![.eE\d])")
_NONE = type(None)
_PLAIN = frozenset({str, int, bool, _NONE})
_INT64 = 2**63


class TooManyCells(Exception):
    """The records have too few names in common for one frame. The caller reads fewer records at a time."""


def read_flat(lines: Sequence[bytes], cells: int) -> pl.DataFrame | None:
    """Return the records of lines that are all flat objects; None if a line may be no flat object.

    Raises:
        TooManyCells: the frame would have more than ``cells`` cells.
    """
    try:
        first = _VALUE.decode(lines[0])
        if not isinstance(first, dict) or not first:
            return None
        alike = _read_alike(lines, tuple(first), cells)
        if alike is not None:
            return alike
        objects = list(map(_VALUE.decode, lines))
        if set(map(type, objects)) != {dict} or not all(objects):
            return None
        names = dict.fromkeys(chain.from_iterable(objects))
        if len(names) * len(objects) > cells:
            raise TooManyCells
        frame = _frame((name, [record.get(name) for record in objects]) for name in names)
        if frame is not None:
            _require_unique(lines, [*map(len, objects)])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return frame


def may_hold_minus_zero(block: bytes) -> bool:
    """Return True if the block may contain ``-0``, the only integer that does not print as it was written."""
    return b"-0" in block and _MINUS_ZERO.search(block) is not None


def _read_alike(lines: Sequence[bytes], names: tuple[str, ...], cells: int) -> pl.DataFrame | None:
    """Return the records if all their names are in ``names`` and each record has at least one value; else None."""
    if len(names) * len(lines) > cells:
        return None
    try:
        objects = list(map(_decoder_for(names).decode, lines))
    except msgspec.ValidationError:
        return None
    absent: Counter[int] = Counter()
    columns = [(name, _fill(list(map(attrgetter(f"f{at}"), objects)), absent)) for at, name in enumerate(names)]
    frame = _frame(columns)
    if frame is None or frame.select(pl.all_horizontal(pl.all().is_null()).any()).item():
        return None  # a record without any value may be an object without any field
    _require_unique(
        lines, [len(names) - absent[at] for at in range(len(lines))] if absent else [len(names)] * len(lines)
    )
    return frame


@lru_cache(maxsize=32)
def _decoder_for(names: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    fields = [(f"f{at}", Any, UNSET) for at in range(len(names))]
    rename = {f"f{at}": name for at, name in enumerate(names)}
    structure = msgspec.defstruct("Line", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(structure, float_hook=str)


def _fill(values: list[Any], absent: Counter[int]) -> list[Any]:
    """Return the values with None for missing values. Add the number of missing values of each line to ``absent``."""
    if UnsetType not in set(map(type, values)):
        return values
    absent.update(at for at, value in enumerate(values) if value is UNSET)
    return [None if value is UNSET else value for value in values]


def _require_unique(lines: Sequence[bytes], members: Sequence[int]) -> None:
    """Check that no line has a name twice. ``members``: the number of decoded members of each line."""
    for line in find_unsure(lines, members):
        require_unique_names(line)


def _frame(columns: Iterable[tuple[str, list[Any]]]) -> pl.DataFrame | None:
    """Return the columns as text; None if a value is nested."""
    series: dict[str, pl.Series] = {}
    for name, values in columns:
        column = _column(name, values)
        if column is None:
            return None
        series[name] = column
    return pl.DataFrame(series)  # from a list, polars would invent a name for a column with an empty name


def _column(name: str, values: list[Any]) -> pl.Series | None:
    types = set(map(type, values))
    if not types <= _PLAIN:
        return None
    if types <= {str, _NONE}:
        return pl.Series(name, values, dtype=pl.String)
    if types == {int} and min(values) >= -_INT64 and max(values) < _INT64:
        return pl.Series(name, values, dtype=pl.Int64).cast(pl.String)
    return pl.Series(name, [_text(value) for value in values], dtype=pl.String)


def _text(value: str | int | bool | None) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value
