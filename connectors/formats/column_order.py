"""Rows that repeat the header of a table, because another table was appended. This module performs no I/O.

If such a row names the columns in another order, the rows below it have this order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import polars as pl

_UNNAMED = re.compile(r"column [0-9]+")
_REPEATED = "The row repeats the header, because another file was appended here."
_REORDERED = (
    "The row names the columns of the header in another order, because another file was appended here. The rows below it are read"
    " with this order."
)

_Cell = TypeVar("_Cell")


class ColumnOrder:
    """The order of a table's columns, as stated by the last row that names all columns.

    ``names``: the names of a row's fields in this order. If ``header`` has fewer than two names, no row counts as a header,
    because a value can't be distinguished from a name.
    """

    def __init__(self, header: Sequence[str]) -> None:
        self._header = self.names = tuple(header)
        cells = [_cell(name) for name in header]
        self._cells = sorted(cells)
        self._known = frozenset([*header, *cells]) if len({*cells} - {""}) > 1 else frozenset()
        self._at: Sequence[int] = ()

    @property
    def is_changed(self) -> bool:
        """True if the rows have another order than the header."""
        return bool(self._at)

    def find_header(self, fields: Sequence[str]) -> str:
        """If a row is a header, use its order for the next rows, and return a sentence about it; empty for a record."""
        if not self._is_header(fields):
            return ""
        left: defaultdict[str, list[str]] = defaultdict(list)
        for name in reversed(self._header):
            left[_cell(name)].append(name)
        self.names = tuple(left[_cell(field)].pop() for field in fields)
        self._at = () if self.names == self._header else [self.names.index(name) for name in self._header]
        return _REORDERED if self._at else _REPEATED

    def arrange(self, fields: Sequence[_Cell]) -> Sequence[_Cell]:
        """Return the fields of a whole row in the order of the header."""
        return [fields[at] for at in self._at] if self._at else fields

    def may_have_header(self, block: bytes, quote: str) -> bool:
        """Return False if a block of UTF-8 text certainly has no header."""
        needles = sorted((name for name in self._known if not (quote and quote in name)), key=len, reverse=True)
        return bool(needles) and all(_cell(name).encode() in block for name in needles)

    def has_header(self, records: pl.DataFrame) -> bool:
        """Return True if a row of these records is a header."""
        known = list(self._known)
        if not known:
            return False
        first, *others = records.columns
        found = records.filter(pl.col(first).is_in(known))
        if found.height and others:
            found = found.filter(pl.all_horizontal(pl.col(others).is_in(known)))
        return any(map(self._is_header, found.iter_rows()))

    def _is_header(self, fields: Sequence[str]) -> bool:
        return (
            len(fields) == len(self._cells) and fields[0] in self._known and sorted(map(_cell, fields)) == self._cells
        )


def _cell(name: str) -> str:
    """Return the header cell of a column: its name; empty for a column that only got a number as its name."""
    return "" if _UNNAMED.fullmatch(name) else name
