"""The text of a file that a user imports as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """The text of a table file. ``sheet``: which sheet of a workbook it is; ``others``: the number of its other sheets."""

    text: str
    sheet: str = ""
    others: int = 0
