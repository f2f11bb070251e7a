"""One sheet of a workbook as texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import BinaryIO, TypeAlias

import msgspec
from python_calamine import CalamineSheet

from ingestd.workbooks.details import CellDetails, duration_text
from ingestd.workbooks.workbook import detect_kind, open_sheet, read_details, read_workbook

CalamineCell: TypeAlias = int | float | str | bool | time | date | datetime | timedelta

_WHOLE = 10**16
"""From this number on, the shortest text of a double has an exponent."""
_NOT_FINITE = frozenset({"inf", "-inf", "nan"})


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One sheet. ``worksheets``: the names of all worksheets of the workbook."""

    cells: CalamineSheet
    details: CellDetails
    worksheets: Sequence[str]

    @property
    def name(self) -> str:
        """The name of the sheet."""
        return self.cells.name

    @property
    def left(self) -> int:
        """The first column with a cell, from 0."""
        return self.cells.start[1] if self.cells.start else 0

    def rows(self) -> Iterator[list[str]]:
        """Yield the texts of each row, from row 1 and column A. A cell without a value, such as an error, has an empty text.

        A number that no cell can hold, such as 1e400, is added to the problems in ``details``. calamine returns infinity for it.
        """
        for number, cells in enumerate(self.cells.iter_rows()):
            texts = [""] * self.left + [cell_text(cell) for cell in cells]
            if not _NOT_FINITE.isdisjoint(texts):
                found = {at: repr(one) for at, one in enumerate(cells, self.left) if _is_not_finite(one)}
                self.details.problems[number] = {**self.details.problems.get(number, {}), **found}
            for column, text in self.details.texts.get(number, {}).items():
                if column < len(texts):
                    texts[column] = text
            yield texts


def read_sheet(file: BinaryIO, name: str, wanted: str | int | None) -> Sheet:
    """Read a sheet by name or by number from 1; None: the first visible sheet with cells. ``name``: the file, for messages.

    Raises:
        WorkbookUnreadable: the file is no workbook, needs a password, is too large, or has no such sheet.
    """
    whole = read_workbook(file, name)
    kind = detect_kind(whole, name)
    cells, worksheets = open_sheet(whole, kind, name, wanted)
    details = read_details(whole, kind, name, cells.name)
    for (row, first), (_, last) in cells.merged_cell_ranges or []:
        details.merged[row].append((first, last))
    return Sheet(cells=cells, details=details, worksheets=worksheets)


def cell_text(cell: CalamineCell) -> str:
    """Return the text that a person types to enter the cell's value. The number format of the cell has no effect.

    A number has the fewest digits that read back as the same number (0.1, 3, 1e-07). A date or time follows ISO 8601, a
    duration is hours, minutes and seconds, and a boolean true or false. An empty cell is the empty text.
    """
    match cell:
        case str():
            return cell
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < _WHOLE else repr(cell)
        case int():
            return str(cell)
        case datetime() | date() | time():
            return cell.isoformat()
        case timedelta():
            return duration_text(cell)


def _is_not_finite(cell: object) -> bool:
    return isinstance(cell, float) and not math.isfinite(cell)
