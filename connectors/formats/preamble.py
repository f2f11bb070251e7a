"""Facts in the rows above a header, such as ``Operator;J. Doe`` or ``Date: 2026-03-01``. This module performs no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from connectors.formats.column_names import UniqueNames
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import escape_stray_bytes

PREAMBLE = "file.preamble."
"""The prefix of the facts, such as ``file.preamble.Operator``."""

DESCRIPTION = (
    "Whether rows above the header such as `Operator;J. Doe` or `Date: 2026-03-01` are facts of the file. A mapping finds them"
    " as {file.preamble.Operator}."
)
"""Describes the option ``preamble`` of a format."""

MOST_ROWS = 1000
MOST_CHARACTERS = 2**16

_MARKS = "#%!*/; \t"
"""Characters that often begin a comment."""
_ASSIGNMENT = re.compile(r"([^:=]*[^:=\s])\s*[:=]\s*(.+)", re.DOTALL)


def preamble_facts(rows: Iterable[Sequence[str]], file: str, *, separator: str = " ") -> Mapping[str, str]:
    """Return the facts of the rows above a header.

    If the first cell has text on both sides of a colon or an equals sign, it is a name and a value. Further cells belong to
    the value, joined by ``separator``. Otherwise the first cell is the name, and the next cell with text is the value. A
    row without a value is not a fact. A repeated name gets a number: ``Operator 2``. ``file`` names the file in errors.

    Raises:
        SourceBroken: the rows are too many, or too long.
    """
    facts: dict[str, str] = {}
    names = UniqueNames()
    size = 0
    for count, cells in enumerate(rows, start=1):
        size += sum(map(len, cells))
        if count > MOST_ROWS or size > MOST_CHARACTERS:
            raise SourceBroken(
                f"{file} has more than {MOST_ROWS} rows or {MOST_CHARACTERS} characters above its header. Check header_row, or"
                " leave out preamble."
            )
        fact = _fact(cells, separator)
        if fact is not None:
            name, value = (escape_stray_bytes(text) for text in fact)
            facts[names.add(f"{PREAMBLE}{name}")] = value
    return facts


def _fact(cells: Sequence[str], separator: str) -> tuple[str, str] | None:
    filled = [cell.strip() for cell in cells]
    filled[:1] = [cell.lstrip(_MARKS) for cell in filled[:1]]
    while filled and not filled[-1]:
        filled.pop()
    while filled and not filled[0]:
        filled.pop(0)
    if not filled:
        return None
    first, *more = filled
    if found := _ASSIGNMENT.fullmatch(first):
        return found[1], separator.join([found[2], *more])
    name = first.rstrip(":= \t")
    value = next((cell for cell in more if cell), "")
    return (name, value) if name and value else None
