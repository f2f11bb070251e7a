"""Column names: unique names from the cells of a header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from ingestd.sdk import SourceBroken

Unnamed = Annotated[
    Literal["number", "refuse"],
    Field(description="Columns without a name: they are named `column 3` (number), or the file is not read (refuse)."),
]
Columns = Annotated[
    list[Annotated[str, Field(min_length=1)]] | None,
    Field(min_length=1, description="The columns' names, for a file without a header."),
]
Repeated = Annotated[
    Literal["refuse", "number"],
    Field(
        description="A repeated column name: the file is not read (refuse), or the second is named `mass 2` (number)."
    ),
]


def check_columns(columns: Sequence[str] | None, *, has_header: bool) -> None:
    """Raise ValueError if ``columns`` has a name twice, or if settings for a header are set, too."""
    if columns is not None and has_header:
        raise ValueError(
            "columns is for files without a header: leave out header_row, header_rows, units_row and preamble"
        )
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError("columns has a name twice")


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The treatment of columns without a name, and of repeated names."""

    unnamed: Literal["number", "refuse"] = "number"
    repeated: Literal["number", "refuse"] = "refuse"


DEFAULT_NAMING = Naming()


def named_columns(cells: Sequence[str], file: str, naming: Naming) -> tuple[str, ...]:
    """Return a unique name for each column. ``file`` names the file in errors.

    Raises:
        SourceBroken: a name is empty or repeated, and ``naming`` does not allow this.
    """
    names = list(cells)
    nameless = [number for number, name in enumerate(names, start=1) if not name]
    if nameless and naming.unnamed == "refuse":
        listed = ", ".join(map(str, nameless))
        raise SourceBroken(
            f"{file}: the header gives no name to column {listed} of {len(names)}. Name it, or set unnamed_columns: number."
        )
    taken = UniqueNames(names)
    for number in nameless:
        names[number - 1] = taken.add(f"column {number}")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice and naming.repeated == "refuse":
        listed = ", ".join(f"{name!r}" for name in twice)
        raise SourceBroken(
            f"{file}: the header has more than one column {listed}. Give each its own name, or set repeated_columns: number."
        )
    return tuple(numbered_names(names))


def joined_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Join the texts of each column in several header rows by a space; equal texts count once. The rows have equal lengths."""
    return [" ".join(dict.fromkeys(part for part in parts if part)) for parts in zip(*rows, strict=True)]


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return the names; a repeated name gets the first number that makes it unique."""
    taken, used = UniqueNames(names), set[str]()
    found = []
    for name in names:
        found.append(taken.add(name) if name in used else name)
        used.add(name)
    return found


class UniqueNames:
    """Makes names unique by adding numbers. The time for each name is constant."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Return the name; if it is taken, add the first number that makes it unique. The returned name is then taken."""
        unique, number = name, self._next.get(name, 2)
        while unique in self._taken:
            unique = f"{name} {number}"
            number += 1
        self._next[name] = number
        self._taken.add(unique)
        return unique
