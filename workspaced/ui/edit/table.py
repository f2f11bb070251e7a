"""Tables that users paste or import: their cells, and the entries in them. Performs no I/O.

Cells are separated by tabs (like cells that a spreadsheet copies), commas, semicolons or bars. Every cell keeps its exact text,
unless the user chooses to read numbers with a decimal comma.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from workspaced.core.problems import Invalid
from workspaced.core.sort_keys import number_of

KEY_AND_VALUE: Final = "rows"
ONE_ROW_EACH: Final = "columns"
_DELIMITERS: Final = "\t;,|"
_LOOKED_AT: Final = 20
"""How many rows are examined to find the delimiter and the first row of a table."""
_SHOWN_NAMES: Final = 6
_NUMBERS_PER_TEXT: Final = 3
_CELL_CHARACTERS: Final = 131_072
_GROUPS: Final = r"[1-9]\d{0,2}(?:[. \u00a0\u202f']\d{3})+"
"""Groups of three digits. The first group does not begin with a zero, because the point of 0.500 separates decimals."""
_NUMBER_WITH_COMMA: Final = re.compile(rf"([+-]?)({_GROUPS}|\d+),(\d+)", re.ASCII)
_GROUPED: Final = re.compile(rf"[+-]?{_GROUPS}", re.ASCII)
_NUMBER_FIRST: Final = re.compile(r"\s*[+-]?[.,]?\d", re.ASCII)
_GROUP_MARKS: Final = re.compile(r"[. \u00a0\u202f']")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """How a table is read.

    ``shape`` `KEY_AND_VALUE`: each row is an entry, with the columns key, value and perhaps type. `ONE_ROW_EACH`: each cell
    after the first column is an entry, with the key ``first cell.column``; empty cells are skipped.

    ``first_row``: the number, from 1, of the row with the names of the columns or, without names, of the row with the first
    entry. Rows before this row are left out.
    """

    shape: str
    has_header: bool
    decimal_comma: bool
    first_row: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableItem:
    """An entry of a table, as an item of a mass update. ``row``: its row number, from 1; the header counts, too.

    ``column``: the name of its column if the shape is `ONE_ROW_EACH`; else empty.
    """

    row: int
    column: str = ""
    item: dict[str, Any]


def cells_of(text: str) -> list[list[str]]:
    """Return the rows of a text, including empty rows.

    Raises:
        Invalid: a quoted cell does not end, or a cell is too long.
    """
    delimiter = _delimiter(text)
    csv.field_size_limit(_CELL_CHARACTERS)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter, strict=True):
            rows.append(row)  # noqa: PERF402  `list` would let no other thread run until it has read all rows
    except csv.Error as error:
        raise Invalid("bad_table", f"The text can't be read as a table: {error}.") from error
    return rows


def guess(rows: Sequence[Sequence[str]]) -> TableReading:
    """Return the most probable reading of a table.

    The table begins with the first row that has the names ``key`` and ``value``. Without such a row, it begins after its
    titles. In a table with two columns, the first row has names if it is the only row without a number in the second column.
    """
    begin = _first_row(rows)
    rows = rows[begin:]
    first = _names(rows[0]) if rows else []
    named = _is_named(first)
    is_narrow = len(first) == 2
    numbers = [_NUMBER_FIRST.match(row[1]) is not None for row in rows if len(row) == 2 and row[1].strip()]
    header = named or not is_narrow or (len(numbers) > 1 and not numbers[0] and all(numbers[1:]))
    return TableReading(
        shape=KEY_AND_VALUE if named or is_narrow else ONE_ROW_EACH,
        has_header=header,
        decimal_comma=False,
        first_row=begin + 1,
    )


def description(rows: Sequence[Sequence[str]], reading: TableReading) -> str:
    """Return a sentence for the user that describes how a table is read."""
    begin = reading.first_row
    names = (
        [cell.strip() or "(no name)" for cell in rows[begin - 1]] if reading.has_header and len(rows) >= begin else []
    )
    shown = ", ".join(names[:_SHOWN_NAMES]) + (f" and {len(names) - _SHOWN_NAMES} more" if names[_SHOWN_NAMES:] else "")
    first = f"Row {begin} has the names of the columns: {shown}." if names else "No row has names of columns."
    skipped = f" Rows 1 to {begin - 1} are left out." if begin > 2 else " Row 1 is left out." if begin == 2 else ""
    meaning = (
        "Each row is an entry." if reading.shape == KEY_AND_VALUE else "Each cell after the first column is an entry."
    )
    return f"{first}{skipped} {meaning}"


def texts_among_numbers(items: Sequence[TableItem]) -> set[int]:
    """Return the indexes of items with a text in a column of numbers: a column with at least three numbers for each text."""
    columns: dict[str, tuple[list[int], list[int]]] = {}
    for index, one in enumerate(items):
        if text := one.item["value"].strip():
            columns.setdefault(one.column, ([], []))[number_of(text) is None].append(index)
    return {
        index
        for numbers, texts in columns.values()
        if len(numbers) >= _NUMBERS_PER_TEXT * len(texts)
        for index in texts
    }


def _first_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the first row of the table. The rows before are titles: empty rows, and rows with one cell."""
    filled = [sum(1 for cell in row if cell.strip()) for row in rows[:_LOOKED_AT]]
    named = next((index for index, row in enumerate(rows[:_LOOKED_AT]) if _is_named(_names(row))), None)
    if named is not None:
        return named
    width = max(filled, default=0)
    for index, row in enumerate(rows[:_LOOKED_AT]):
        if filled[index] > 1 or (filled[index] == 1 and width < 3 and len(row) >= width):
            return index
    return 0


def _names(row: Sequence[str]) -> list[str]:
    return [cell.strip().lower() for cell in row]


def _is_named(names: Sequence[str]) -> bool:
    return "key" in names and "value" in names


def items_of(rows: Sequence[Sequence[str]], reading: TableReading, *, most: int) -> list[TableItem]:
    """Return the entries of a table.

    Raises:
        Invalid: the table has no entries, more than ``most`` entries, or no column for keys or values.
    """
    filled = [
        (number, row)
        for number, row in enumerate(rows, start=1)
        if number >= reading.first_row and any(cell.strip() for cell in row)
    ]
    header = filled.pop(0)[1] if reading.has_header and filled else []
    if not filled:
        raise Invalid("empty_table", "The table has no entries. Paste rows with a key and a value.")
    found = _rows(header, filled) if reading.shape == KEY_AND_VALUE else _columns(header, filled)
    items = list(islice(found, most + 1))
    if not items:
        raise Invalid("empty_table", "The table has no entries: all cells of values are empty.")
    if len(items) > most:
        raise Invalid(
            "too_many_items", f"The table has more than {most} entries; up to {most} are imported at once. Split it."
        )
    if reading.decimal_comma:
        for one in items:
            one.item["value"] = with_decimal_point(one.item["value"])
    return items


def with_decimal_point(text: str) -> str:
    """Convert a number with a decimal comma: ``1.234,50`` becomes ``1234.50``.

    Any other text, such as ``1,5,2``, ``1.5``, ``0.500`` or a word, is returned unchanged.
    """
    plain = text.strip()
    if found := _NUMBER_WITH_COMMA.fullmatch(plain):
        return f"{found[1]}{_GROUP_MARKS.sub('', found[2])}.{found[3]}"
    return _GROUP_MARKS.sub("", plain) if _GROUPED.fullmatch(plain) else text


def _rows(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> Iterator[TableItem]:
    names = _names(header)
    key = names.index("key") if "key" in names else 0
    value = names.index("value") if "value" in names else 1
    kind = next((names.index(name) for name in ("datatype", "type") if name in names), None)
    for number, row in rows:
        if len(row) <= max(key, value):
            raise Invalid("bad_table", f"Row {number} has {len(row)} cells, so it has no key or no value.")
        item = {"key": row[key].strip(), "value": row[value]}
        if kind is not None and kind < len(row) and row[kind].strip():
            item["dataType"] = row[kind].strip()
        yield TableItem(row=number, item=item)


def _columns(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> Iterator[TableItem]:
    if len(header) < 2:
        raise Invalid(
            "bad_table",
            "The row of the names must have at least two columns: one for the keys, and one for each value.",
        )
    for number, row in rows:
        if len(row) > len(header):
            raise Invalid(
                "bad_table", f"Row {number} has {len(row)} cells, but the row of the names has {len(header)}."
            )
        for name, cell in zip(header[1:], row[1:], strict=False):
            if cell.strip():
                item = {"key": f"{row[0].strip()}.{name.strip()}", "value": cell}
                yield TableItem(row=number, column=name.strip(), item=item)


def _delimiter(text: str) -> str:
    """Return the delimiter that occurs in most of the first lines, outside quotes. So a comma in a title has no effect.

    If several delimiters occur in equally many lines, prefer the tab, then the most frequent delimiter, then the semicolon.
    A comma has the lowest rank, because it may be a decimal comma.
    """
    lines = ["".join(line.split('"')[::2]) for line in text.splitlines()[:_LOOKED_AT]]

    def rank(letter: str) -> tuple[int, bool, int]:
        return sum(letter in line for line in lines), letter == "\t", "".join(lines).count(letter)

    return max(_DELIMITERS, key=rank)
