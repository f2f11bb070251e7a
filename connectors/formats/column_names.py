"""What a header's cells make of columns: each a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from ingestd.sdk import SourceBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What becomes of columns without a name, and of a name that is given twice."""

    unnamed: Literal["number", "refuse"] = "number"
    repeated: Literal["number", "refuse"] = "refuse"


DEFAULT_NAMING = Naming()


def named_columns(cells: Sequence[str], file: str, naming: Naming) -> tuple[str, ...]:
    """The columns' names, none empty and no two alike; ``file`` names the file, for the sentence of an error.

    Raises:
        SourceBroken: some are, and that is to be refused.
    """
    names = list(cells)
    nameless = [number for number, name in enumerate(names, start=1) if not name]
    if nameless and naming.unnamed == "refuse":
        told = ", ".join(map(str, nameless))
        raise SourceBroken(f"{file}: the header gives no name to column {told} of {len(names)}. Name it.")
    for number in nameless:
        names[number - 1] = f"column {number}" if f"column {number}" not in names else _free(f"column {number}", names)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice and naming.repeated == "refuse":
        told = ", ".join(f"{name!r}" for name in twice)
        raise SourceBroken(f"{file}: the header has more than one column {told}. Give each its own name.")
    for at, name in enumerate(names):
        if name in names[:at]:
            names[at] = _free(name, names)
    return tuple(names)


def _free(name: str, taken: list[str]) -> str:
    """The name with the first number behind it that makes it another than all others."""
    return next(other for number in count(2) if (other := f"{name} {number}") not in taken)
