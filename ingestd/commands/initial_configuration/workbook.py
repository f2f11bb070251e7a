"""The table of a sample workbook: its sheet, its cells and its layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ingestd.commands.initial_configuration.file_sample import Decisions, FileSample
from ingestd.commands.initial_configuration.sample import first_rows, records_of_file
from ingestd.commands.initial_configuration.table_layout import Row, TableLayout, find_layout
from ingestd.commands.initial_configuration.table_settings import (
    decide_layout,
    header_settings,
    is_unit,
    preamble_settings,
)
from ingestd.core.errors import SourceBroken
from ingestd.workbooks.references import column_letters

_SHEETS = 50
_COLUMNS = 256
_SIMILAR = 0.3
"""A table with at least this share of the largest table's cells may be the intended table."""


class _SheetTable(msgspec.Struct, frozen=True, kw_only=True):
    sheet: str
    area: str
    rows: Sequence[Row]
    layout: TableLayout

    @property
    def cells(self) -> int:
        return self.layout.records * (self.layout.last - self.layout.first + 1)


def understand_workbook(path: Path, decisions: Decisions) -> FileSample:
    """Return the format settings and the records of a workbook.

    Raises:
        SourceBroken: the workbook can't be read, or has no table.
    """
    sheets = dict(_sheets(path, decisions))
    found = {sheet: tables for sheet, rows in sheets.items() if (tables := _tables(sheet, rows, decisions))}
    if not found:
        raise SourceBroken(
            f"{path.name} has no sheet with a header and records below it. Name a sample with records, or the header with"
            " --header-row."
        )
    sheet = max(found, key=lambda one: max(table.cells for table in found[one]))
    if len(found) > 1:
        sheet = decisions.decide("--sheet", f"Several sheets have tables: {', '.join(found)}.", sheet, choices=[*found])
    table = _meant_table(path, found[sheet], decisions)
    layout = decide_layout(path, table.rows, decisions) or table.layout
    settings: dict[str, object] = {"type": "excel"}
    if len(sheets) > 1 or decisions.given("--sheet") is not None:
        settings["sheet"] = table.sheet
    if table.area:
        settings["area"] = table.area
    if not layout.header_row:
        settings["columns"] = [f"column {number}" for number in range(1, layout.last + 2)]
    elif layout.header_row != table.rows[0][0]:
        settings["header_row"] = layout.header_row
    settings |= header_settings(layout)
    if "header_row" in settings:
        settings |= preamble_settings(path, settings)
    if settings.keys() == {"type"}:
        settings = {}
    return FileSample(settings=settings, records=records_of_file(path, settings), layout=layout)


def _sheets(path: Path, decisions: Decisions) -> Iterator[tuple[str, Sequence[Row]]]:
    """Yield the name and the first rows of each sheet that has cells."""
    raw: dict[str, object] = {"type": "excel", "columns": [f"c{number}" for number in range(_COLUMNS)]}
    if (area := decisions.given("--area")) is not None:
        raw["area"] = area
    sheet = decisions.given("--sheet")
    for number in range(1, _SHEETS) if sheet is None else (sheet,):
        try:
            rows, facts = first_rows(path, {**raw, "sheet": number})
        except SourceBroken:
            if number in {1, sheet}:
                raise
            return
        if rows:
            yield facts["file.sheet"], rows


def _tables(sheet: str, rows: Sequence[Row], decisions: Decisions) -> Sequence[_SheetTable]:
    """Return the tables of a sheet. An empty column separates two tables."""
    given = decisions.given("--header-row")
    header_row = None if given is None else int(given)
    if (area := decisions.given("--area")) is not None:
        layout = find_layout(rows, is_unit, header_row=header_row)
        return [] if layout is None else [_SheetTable(sheet=sheet, area=area, rows=rows, layout=layout)]
    blocks = list(_blocks(rows))
    found = []
    for left, right in blocks:
        part = [(number, cells[left : right + 1]) for number, cells in rows if any(cells[left : right + 1])]
        layout = find_layout(part, is_unit, header_row=header_row)
        if layout is not None and layout.last > layout.first:
            is_whole = left == 0 and right == blocks[-1][1]
            area = "" if is_whole else f"{column_letters(left)}:{column_letters(right)}"
            found.append(_SheetTable(sheet=sheet, area=area, rows=part, layout=layout))
    return found


def _meant_table(path: Path, tables: Sequence[_SheetTable], decisions: Decisions) -> _SheetTable:
    """Return the table with the most cells. If another table has a similar size, the choice is a doubt."""
    largest = max(tables, key=lambda one: one.cells)
    similar = [one.area for one in tables if one.cells >= _SIMILAR * largest.cells]
    if len(similar) == 1:
        return largest
    doubt = f"The sheet {largest.sheet} of {path.name} has several tables: {', '.join(similar)}."
    found = {one.area: one for one in tables}
    return found[decisions.decide("--area", doubt, largest.area, choices=[*found])]


def _blocks(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last column of each range of neighbouring columns with cells."""
    used = [any(cells) for cells in zip(*(cells for _, cells in rows), strict=True)]
    left = None
    for at, is_used in enumerate([*used, False]):
        if is_used and left is None:
            left = at
        elif not is_used and left is not None:
            yield left, at - 1
            left = None
