"""The spreadsheet reader: one sheet of a workbook as records under a header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from connectors.formats.column_names import DEFAULT_NAMING, Naming, joined_names, named_columns
from connectors.formats.column_order import ColumnOrder
from connectors.formats.excel.area import Area
from connectors.formats.frames import rows_to_frame
from connectors.formats.preamble import MOST_ROWS, preamble_facts
from ingestd.sdk import NOTICE, Reject, SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, row_positions
from ingestd.workbooks.details import NO_VALUE, CellDetails
from ingestd.workbooks.references import column_letters
from ingestd.workbooks.sheet import read_sheet
from ingestd.workbooks.workbook import WorkbookUnreadable

_ROWS = 10_000
_CELLS = 2_000_000
_WHOLE_SHEET = Area()
CORRECT = "Correct the cell in the workbook, or set 'errors: missing' to read the row without it."
SAVE = "Open the workbook in its program and save it, because that stores the values of formulas."

MergedCells: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]
"""By the first row, the first and the last column of each merged cell, all from 0."""
Row = tuple[int, list[str]]
"""A row's number in the spreadsheet, and its cells as text."""


class SheetLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a sheet is read, and how.

    ``header_row``: the first row of the header (None: the first row that is not empty). ``header_rows``: the number of header
    rows. ``columns``: the names for a sheet without a header. ``errors``: how a record with an error cell is treated.
    ``preamble``: the rows of the area above the header are facts.
    """

    area: Area = _WHOLE_SHEET
    header_row: int | None = None
    header_rows: int = 1
    columns: tuple[str, ...] = ()
    units_row: bool = False
    errors: Literal["reject", "missing"] = "reject"
    naming: Naming = DEFAULT_NAMING
    preamble: bool = False


def read_excel(file: BinaryIO, name: str, *, sheet: str | int | None, layout: SheetLayout) -> Iterator[RecordChunk]:
    """Yield the records of a sheet, at least one chunk. A position is the row's number in the spreadsheet.

    Rows without any text are no records. An empty cell is the empty text, as in CSV. A record with an error cell, or with a
    formula without a saved value, is rejected. If ``layout.errors`` is "missing", the cell counts as absent.

    Raises:
        SourceBroken: the file is no workbook, has no such sheet, or its header can't name columns.
    """
    try:
        found = read_sheet(file, name, sheet)
    except WorkbookUnreadable as error:
        raise SourceBroken(str(error)) from error
    rows = _rows(found.rows(), layout.area)
    top = _read_top(rows, layout, found.details.merged, name)
    yield from _chunks(rows, top, found.details, layout, {"file.sheet": found.name, **top.facts})


class _SheetTop(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[str, ...]
    row: int
    facts: Mapping[str, str]


def _rows(rows: Iterator[list[str]], area: Area) -> Iterator[Row]:
    """Yield the rows of the area, each as wide as the sheet or the area."""
    for number, texts in islice(enumerate(rows, start=1), area.top, None if area.bottom is None else area.bottom + 1):
        missing = 0 if area.right is None else area.right + 1 - len(texts)
        yield number, [*texts, *[""] * missing][area.left : None if area.right is None else area.right + 1]


def _read_top(rows: Iterator[Row], layout: SheetLayout, merged: MergedCells, name: str) -> _SheetTop:
    """Read the rows above the first record: the preamble, the header and the units."""
    if layout.columns:
        return _SheetTop(names=layout.columns, row=0, facts={})
    above: list[list[str]] = []
    first = next(rows, None)
    while first is not None and not (any(first[1]) if layout.header_row is None else first[0] >= layout.header_row):
        if layout.preamble and any(first[1]) and len(above) <= MOST_ROWS:
            above.append(first[1])
        first = next(rows, None)
    if first is None or (layout.header_row is not None and first[0] != layout.header_row):
        wanted = "that is not empty" if layout.header_row is None else f"{layout.header_row} (header_row)"
        raise SourceBroken(f"{name} has no row {wanted}, which should be its header.")
    head = [first, *islice(rows, layout.header_rows - 1)]
    spread = [_spread_merged(texts, merged.get(number - 1, ()), layout.area.left) for number, texts in head]
    joined = joined_names(spread)
    while joined and not joined[-1]:
        joined.pop()  # cells after the last name may have a format but no text
    if not any(joined):
        raise SourceBroken(f"{name}: the header row {first[0]} (header_row) is blank.")
    names = named_columns(joined, name, layout.naming)
    facts = {"file.header_row": str(first[0])}
    if layout.preamble:
        facts |= preamble_facts(above, name)
    if layout.units_row:
        units = next(rows, (0, []))[1]
        facts |= {f"units.{column}": unit.strip() for column, unit in zip(names, units, strict=False)}
    return _SheetTop(names=names, row=first[0], facts=facts)


def _spread_merged(texts: list[str], merged: Sequence[tuple[int, int]], left: int) -> list[str]:
    """Return a header row. Each column of the merged cells that begin in this row gets the text of its cell."""
    spread = [text.strip() for text in texts]
    for first, last in merged:
        if 0 <= first - left < len(spread):
            for column in range(first - left, min(last - left + 1, len(spread))):
                spread[column] = spread[first - left]
    return spread


def _chunks(
    rows: Iterator[Row], top: _SheetTop, details: CellDetails, layout: SheetLayout, facts: Mapping[str, str]
) -> Iterator[RecordChunk]:
    width, location = len(top.names), RecordLocation(row=top.row)
    problems = details.problems
    order = ColumnOrder(() if layout.columns else top.names)
    unnamed = _UnnamedCells(width, layout.area.left)
    is_empty = True
    while block := list(islice(rows, max(1, min(_ROWS, _CELLS // max(width, 1))))):
        records: list[Sequence[str | None]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, texts in block:
            fields: list[str | None] = [*texts[:width], *[""] * (width - len(texts))]
            unnamed.count(number, texts)
            if reason := order.find_header([text.strip() for text in texts[:width]]):
                record = dict(zip(order.names, texts, strict=False))
                rejects.append(Reject(position=number, reason=reason, record=record))
                continue
            if number - 1 in problems and (bad := _problems_in(problems[number - 1], width, layout.area.left)):
                if layout.errors == "reject":
                    rejects.append(_reject(number, order.names or top.names, fields, bad, layout.area.left))
                    continue
                for at in bad:
                    fields[at] = None
            elif not any(fields):
                continue
            records.append(order.arrange(fields))
            numbers.append(number)
        location = RecordLocation(offset=0, row=block[-1][0])
        is_empty = False
        yield _chunk(
            list(zip(numbers, records, strict=True)), rejects, top.names, location, {**facts, **unnamed.facts()}
        )
    if is_empty:
        yield _chunk([], [], top.names, location, facts)


@dataclass(slots=True)
class _UnnamedCells:
    """Counts the cells with content after the last named column, which are not read."""

    width: int
    left: int
    found: int = 0
    first: str = ""

    def count(self, number: int, texts: Sequence[str]) -> None:
        for at in range(self.width, len(texts)):
            if texts[at]:
                self.found += 1
                self.first = self.first or f"{column_letters(at + self.left)}{number}"

    def facts(self) -> dict[str, str]:
        """Return the notice as a fact; nothing if no cell was found so far."""
        if not self.found:
            return {}
        cells = (
            f"{self.first} holds" if self.found == 1 else f"{self.found} cells, the first of them {self.first}, hold"
        )
        return {
            NOTICE: f"{cells} a value after the last column that the header names. Such cells are not read. Name the column."
        }


def _problems_in(row: Mapping[int, str], width: int, left: int) -> dict[int, str]:
    """Return the problems of a row by field number, in the order of the fields."""
    return {column - left: row[column] for column in sorted(row) if 0 <= column - left < width}


def _reject(
    number: int, names: Sequence[str], fields: Sequence[str | None], bad: Mapping[int, str], left: int
) -> Reject:
    listed = ", ".join(f"{error} in {column_letters(at + left)}{number} ({names[at]})" for at, error in bad.items())
    record = {name: bad.get(at, text) for at, (name, text) in enumerate(zip(names, fields, strict=True))}
    field = names[min(bad)] if len(bad) == 1 else ""
    advice = SAVE if NO_VALUE in bad.values() else CORRECT
    return Reject(position=number, reason=f"The row has {listed}. {advice}", field=field, record=record)


def _chunk(
    records: Sequence[tuple[int, Sequence[str | None]]],
    rejects: Sequence[Reject],
    names: Sequence[str],
    location: RecordLocation,
    facts: Mapping[str, str],
) -> RecordChunk:
    return RecordChunk(
        records=rows_to_frame([fields for _, fields in records], names),
        positions=row_positions([number for number, _ in records]),
        rejects=tuple(rejects),
        end=location,
        header=True,
        facts=facts,
    )
