"""The text of a file that a user imports as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """The text of a table file. ``sheet``: the name of the sheet in its workbook. ``others``: the number of other sheets."""

    text: str
    sheet: str = ""
    others: int = 0
