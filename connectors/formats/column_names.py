"""Column names: unique names from the cells of a header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from itertools import count
from typing import Literal

import msgspec

from ingestd.sdk import SourceBroken


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The treatment of columns without a name, and of repeated names."""

    unnamed: Literal["number", "refuse"] = "number"
    repeated: Literal["number", "refuse"] = "refuse"


DEFAULT_NAMING = Naming()


def named_columns(cells: Sequence[str], file: str, naming: Naming) -> tuple[str, ...]:
    """Return the columns' names, none empty and no two equal. ``file`` names the file in errors.

    Raises:
        SourceBroken: a name is empty or occurs twice, and ``naming`` does not allow that.
    """
    names = list(cells)
    nameless = [number for number, name in enumerate(names, start=1) if not name]
    if nameless and naming.unnamed == "refuse":
        listed = ", ".join(map(str, nameless))
        raise SourceBroken(
            f"{file}: the header gives no name to column {listed} of {len(names)}. Name it, or set unnamed_columns: number."
        )
    for number in nameless:
        names[number - 1] = (
            f"column {number}" if f"column {number}" not in names else _with_number(f"column {number}", names)
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice and naming.repeated == "refuse":
        listed = ", ".join(f"{name!r}" for name in twice)
        raise SourceBroken(
            f"{file}: the header has more than one column {listed}. Give each its own name, or set repeated_columns: number."
        )
    for at, name in enumerate(names):
        if name in names[:at]:
            names[at] = _with_number(name, names)
    return tuple(names)


def next_name(name: str, taken: Container[str]) -> str:
    """Return the name; if it is taken, with the first number that makes it differ from all others."""
    return _with_number(name, taken) if name in taken else name


def _with_number(name: str, taken: Container[str]) -> str:
    """Return the name with the first number that makes it differ from all others."""
    return next(other for number in count(2) if (other := f"{name} {number}") not in taken)
