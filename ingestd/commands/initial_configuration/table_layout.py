"""The layout of a table in the rows of a sample: title rows, header rows, a row of units, records. Performs no I/O.

Columns with numbers and dates show where the header ends: their cells are texts in the header, and values in the records. If
the rows do not prove a decision, the decision is a doubt, which a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from ingestd.core.column_profile import NO_VALUE

_VALUE = re.compile(
    r"""([<>≤≥~≈±]\s?)?[+\-\u2212]?                                                # limits and signs
    (\d+([.,'\u2019]\d+|[ \u00a0\u202f]\d{3})*|[.,]\d+)([eE][+-]?\d+)?\s?[%‰€$£*]?  # numbers
    | \d{4}-\d{2}-\d{2}([T ]\S+)? | \d{1,2}[./]\d{1,2}[./]\d{2,4}(\s\S+)?  # dates
    | \d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?                                     # times""",
    re.VERBOSE,
)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]+[.,][0-9]+")
_MISSING = NO_VALUE | {""}
_UNIT_WORDS = frozenset({"unit", "units", "einheit", "einheiten", "text"})
_OTHER_UNITS = frozenset({"%", "‰", "°", "°c", "°f", "ppm", "stk", "stück", "pcs"})
_TIME_FORMAT = re.compile(r"[hmsdytj]{1,4}([:./-][hmsdytj]{1,4}){1,2}", re.IGNORECASE)
"""A format of times or dates in a row of units, such as hh:mm:ss and TT.MM.JJJJ."""
_BRACKETED = re.compile(r"\[.*\]|\(.*\)|<.*>")
_ROWS_ABOVE = 100
_HEADER_ROWS = 3
_LONG = 80
"""The maximum number of characters of a column's name."""

Row = tuple[int, Sequence[str]]
"""A row's number, from 1, and its cells."""


class TableLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a table. ``header_row``: the number of the first header row; 0: the table has no header.

    ``first``, ``last``: the first and last column, from 0. ``doubts``: sentences on unproven decisions, by command option.
    ``repeats_names``: two columns have the same name. ``records``: the number of rows that look like records.
    """

    header_row: int
    header_rows: int = 1
    units_row: bool = False
    first: int = 0
    last: int = 0
    repeats_names: bool = False
    records: int = 0
    doubts: Mapping[str, str] = msgspec.field(default_factory=dict)


def has_no_header(names: Sequence[str]) -> bool:
    """Return True if the names look like a record: one is a fraction, or all are whole numbers (also if they are years)."""
    return any(map(_FRACTION.fullmatch, names)) or all(map(_WHOLE_NUMBER.fullmatch, names))


def find_layout(
    rows: Sequence[Row], is_unit: Callable[[str], bool], *, header_row: int | None = None
) -> TableLayout | None:
    """Return the layout of the table in ``rows``, which has no empty rows; None if there is no table.

    ``is_unit`` returns True for the name of a unit. ``header_row``: the first header row; 0: no header; None: not known.
    """
    if len(rows) < 2 and header_row is None:
        return None
    return _Table(rows, is_unit).layout(header_row)


class _Table:
    """The rows of a sample, and the columns that have values in the last third of the rows."""

    def __init__(self, rows: Sequence[Row], is_unit: Callable[[str], bool]) -> None:
        self._rows = [(number, [cell.strip() for cell in cells]) for number, cells in rows]
        self._is_unit = is_unit
        lower = [cells for _, cells in self._rows[-max(1, len(rows) // 3) :]]
        width = max(len(cells) for _, cells in self._rows)
        filled = [[cells[at] for cells in lower if not _is_missing(cells, at)] for at in range(width)]
        self._core = [at for at, texts in enumerate(filled) if len(texts) * 10 >= len(lower) * 6]
        self._valued = [
            at
            for at, texts in enumerate(filled)
            if len(texts) * 10 >= len(lower) * 3 and sum(map(_is_value, texts)) * 10 >= len(texts) * 6
        ]
        self._kinds = [self._kind(cells) for _, cells in self._rows]

    def _kind(self, cells: Sequence[str]) -> str:
        """Return ``record`` or ``text`` by the cells in columns with values; an empty text if most cells are missing."""
        present = [cells[at] for at in self._valued if not _is_missing(cells, at)]
        values = sum(map(_is_value, present))
        if not present or len(present) * 2 < len(self._valued):
            return ""
        return "record" if values * 2 > len(present) else "text"

    def layout(self, header_row: int | None) -> TableLayout | None:
        if header_row == 0:
            return self._without_header()
        if header_row is not None:
            at = next((at for at, (number, _) in enumerate(self._rows) if number == header_row), None)
            return None if at is None else self._below(at)
        found = [one for one in map(self._above, range(1, min(len(self._rows), _ROWS_ABOVE))) if one is not None]
        found = [one for at, one in enumerate(found) if self._names(one) not in map(self._names, found[:at])]
        return self._chosen(found) if found else self._by_texts()

    def _names(self, layout: TableLayout) -> Sequence[str]:
        return next(cells for number, cells in self._rows if number == layout.header_row)

    def _chosen(self, found: Sequence[TableLayout]) -> TableLayout:
        """Return the layout with the most records before the next layout, or the first layout if it has enough records."""
        first, *others = found
        if not others:
            return first
        counts = [
            one.records - other.records for one, other in zip(found, [*others, TableLayout(header_row=0)], strict=True)
        ]
        if counts[0] >= 5 and counts[0] * 5 >= first.records:
            return first
        best = found[counts.index(max(counts))]
        rows = " or ".join(str(one.header_row) for one in found)
        return msgspec.structs.replace(
            best, doubts={**best.doubts, "--header-row": f"The header may be in row {rows}."}
        )

    def _above(self, at: int) -> TableLayout | None:
        """Return the layout if the records begin at index ``at`` and a header is above it; else None."""
        if self._kinds[at] != "record" or self._kinds[at - 1] == "record":
            return None
        below = self._kinds[at:]
        records, texts = below.count("record"), below.count("text")
        if texts * 4 > records and not any(self._contrasts(at - 1, one) for one in self._core):
            return None
        bottom, units, doubts = at - 1, False, dict[str, str]()
        unit, number = self._units(at - 1), self._rows[at - 1][0]
        # Above known units, a name may be a word such as 'null', which does not count as text elsewhere.
        may_be_named = at > 1 and (self._is_header(at - 2) or (unit is True and self._kinds[at - 2] != "record"))
        if may_be_named and self._head(at - 2) is not None:
            units = unit is not None
            bottom -= units
            if unit is False:
                doubts["--units-row"] = f"Row {number} may hold the units of the columns."
            if unit is None and self._names_contrast(at - 2):
                bottom -= 1
            elif unit is None and self._is_adjacent(at - 1):
                doubts["--header-row"] = f"The header may be in row {number - 1} or {number}."
        top = self._head(bottom)
        if not units and not self._is_header(bottom, top):
            return None
        repeats, top = (True, bottom) if top is None else (False, top)
        return self._made(top, bottom, units=units, repeats=repeats, records=records, doubts=doubts)

    def _names_contrast(self, top: int) -> bool:
        """Return True if names of the row contrast with the texts below the row, and the cells of the next row do not."""
        return self._is_adjacent(top + 1) and any(
            self._contrasts(top, at) and not self._contrasts(top + 1, at) for at in self._core
        )

    def _below(self, top: int) -> TableLayout:
        """Return the layout of a header that begins at index ``top``."""
        for bottom in range(top, min(top + _HEADER_ROWS, len(self._rows))):
            names = self._joined(top, bottom)
            if self._is_complete(names) and not _repeats(names):
                break
        else:
            bottom, names = top, self._joined(top, top)
        unit = self._units(bottom + 1) if bottom + 2 < len(self._rows) else None
        doubts = (
            {"--units-row": f"Row {self._rows[bottom + 1][0]} may hold the units of the columns."}
            if unit is False
            else {}
        )
        records = self._kinds[bottom + 1 :].count("record")
        return self._made(top, bottom, units=unit is not None, repeats=_repeats(names), records=records, doubts=doubts)

    def _made(
        self, top: int, bottom: int, *, units: bool, repeats: bool, records: int, doubts: Mapping[str, str]
    ) -> TableLayout:
        named = [at for at, name in enumerate(self._joined(top, bottom)) if name]
        return TableLayout(
            header_row=self._rows[top][0],
            header_rows=bottom - top + 1,
            units_row=units,
            first=named[0] if named else 0,
            last=named[-1] if named else 0,
            repeats_names=repeats,
            records=records,
            doubts=doubts,
        )

    def _head(self, bottom: int) -> int | None:
        """Return the index of the first header row if ``bottom`` is the last header row; None if names are missing or equal."""
        for top in range(bottom, max(-1, bottom - _HEADER_ROWS), -1):
            if top < bottom and not self._is_adjacent(top + 1):
                return None
            names = self._joined(top, bottom)
            if self._is_complete(names) and not _repeats(names):
                return top
        return None

    def _is_adjacent(self, at: int) -> bool:
        return self._rows[at][0] == self._rows[at - 1][0] + 1

    def _is_complete(self, names: Sequence[str]) -> bool:
        return all(at < len(names) and names[at] for at in self._core)

    def _joined(self, top: int, bottom: int) -> list[str]:
        head = [cells for _, cells in self._rows[top : bottom + 1]]
        width = max(map(len, head))
        padded = [[*cells, *[""] * (width - len(cells))] for cells in head]
        upper = [list(accumulate(cells, _continued)) for cells in padded[:-1]]
        return [" ".join(dict.fromkeys(filter(None, parts))) for parts in zip(*upper, padded[-1], strict=True)]

    def _is_header(self, at: int, top: int | None = None) -> bool:
        """Return True if the row has short texts above most columns with values. A name may begin in a row from ``top`` on."""
        if self._kinds[at] != "text":
            return False
        cells = self._rows[at][1] if top is None else self._joined(top, at)
        texts = [cells[one] for one in self._valued if not _is_missing(cells, one)]
        names = [text for text in texts if not _is_value(text) and len(text) <= _LONG]
        return len(names) * 10 >= len(self._valued) * 7

    def _units(self, at: int) -> bool | None:
        """Return True if the row holds units, False if it may hold them, None if it does not."""
        cells = self._rows[at][1]
        above = [cells[one] for one in self._valued if not _is_missing(cells, one)]
        others = [cell for one, cell in enumerate(cells) if one not in self._valued and not _is_missing(cells, one)]
        if not above or any(_is_value(cell) or len(cell) > _LONG for cell in above):
            return None
        if any(not _BRACKETED.fullmatch(cell) and cell.lower() not in _UNIT_WORDS for cell in others):
            return None
        known = sum(self._known_unit(cell) for cell in above)
        return True if known == len(above) else False if known or len(others) < len(self._core) else None

    def _known_unit(self, text: str) -> bool:
        is_known = text.lower() in _OTHER_UNITS | _UNIT_WORDS or _TIME_FORMAT.fullmatch(text) is not None
        return is_known or _BRACKETED.fullmatch(text) is not None or self._is_unit(text)

    def _by_texts(self) -> TableLayout | None:
        """Return the layout of a table in which no numbers show the header. The first row may be a doubt."""
        top = next((at for at, (_, cells) in enumerate(self._rows) if self._is_complete(cells)), None)
        if top is None or not self._core:
            return None
        number, cells = self._rows[top]
        if has_no_header([cells[at] for at in self._core]):
            doubt = f"The cells of row {number} are values, so it may be a record instead of the header."
            return msgspec.structs.replace(self._without_header(), doubts={"--header-row": doubt})
        found = self._below(top)
        if any(self._contrasts(top, at) for at in self._core):
            return found
        doubt = f"Nothing shows whether row {number} is the header or the first record."
        return msgspec.structs.replace(found, doubts={**found.doubts, "--header-row": doubt})

    def _contrasts(self, top: int, at: int) -> bool:
        """Return True if the texts of a column differ in kind from its name: all texts have digits, or texts repeat."""
        if _is_missing(self._rows[top][1], at):
            return False
        name = self._rows[top][1][at]
        texts = [cells[at] for _, cells in self._rows[top + 1 :] if not _is_missing(cells, at)]
        if any(one.isdigit() for one in name) or not texts:
            return False
        return all(any(one.isdigit() for one in text) for text in texts) or (
            name not in texts and len(set(texts)) * 2 <= len(texts)
        )

    def _without_header(self) -> TableLayout:
        width = max(len(cells) for _, cells in self._rows)
        return TableLayout(header_row=0, last=width - 1, records=len(self._rows))


def _is_missing(cells: Sequence[str], at: int) -> bool:
    return at >= len(cells) or cells[at].lower() in _MISSING


def _is_value(text: str) -> bool:
    return _VALUE.fullmatch(text) is not None


def _repeats(names: Sequence[str]) -> bool:
    given = [name for name in names if name]
    return len(set(given)) < len(given)


def _continued(left: str, cell: str) -> str:
    return cell or left
