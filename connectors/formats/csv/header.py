"""The header of a CSV file: dialect, columns, units, and the location of the first record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import msgspec
from msgspec.structs import replace

from connectors.formats.column_names import joined_names, named_columns
from connectors.formats.csv.detection import (
    DELIMITERS,
    SAMPLE_RECORDS,
    SampleRecord,
    choose_delimiter,
    find_header,
    separator_line,
)
from connectors.formats.csv.dialect import Dialect, Layout
from connectors.formats.csv.tolerant import is_cleanly_quoted, is_unterminated, iter_records
from connectors.formats.preamble import preamble_facts
from connectors.formats.text import TextFile
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordLocation, escape_stray_bytes

_FIRST_BYTES = 64 * 2**10
_ZIP = b"PK\x03\x04"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a file.

    ``units``: the units of columns, by name. ``row``: the row number of the header; 0: no header. ``end``: the location of the
    first record. ``rest``: the bytes that were read after ``end``. ``preamble``: the facts in the rows above the header.
    """

    names: tuple[str, ...]
    row: int
    dialect: Dialect
    end: RecordLocation
    rest: bytes
    units: Mapping[str, str] = msgspec.field(default_factory=dict)
    preamble: Mapping[str, str] = msgspec.field(default_factory=dict)


def read_header(
    file: TextFile, name: str, *, dialect: Dialect, layout: Layout, block_bytes: int, record_bytes: int
) -> Header:
    """Read the header of a file. ``name`` names the file in errors.

    A delimiter that ``dialect`` lacks is detected.

    Raises:
        SourceBroken: the file is empty, or its header can't name columns.
    """
    buffer, final = b"", False
    while not final and len(buffer) <= record_bytes:
        more = file.read(min(max(_FIRST_BYTES, len(buffer)), block_bytes))
        final = not more
        buffer += more
        if len(buffer) < min(_FIRST_BYTES, block_bytes, record_bytes) and not final:
            continue
        if buffer.startswith(_ZIP):
            raise SourceBroken(
                f"{name} is a zip file or a workbook, and no CSV. Give its name the right suffix, such as .xlsx."
            )
        hint = separator_line(buffer)
        chosen = dialect
        if hint and not dialect.delimiter:
            chosen = replace(dialect, delimiter=hint[0])
        elif not dialect.delimiter:
            chosen = _detect_dialect(buffer, dialect, final=final, layout=layout)
        top = _CsvTop(buffer=buffer, final=final, dialect=chosen, layout=layout, skipped=hint[1] if hint else 0)
        if header := top.header(file, name):
            return header
    if final:
        raise SourceBroken(_describe_missing_header(name, layout, empty=not buffer.strip()))
    raise SourceBroken(f"{name}: no header row within the first {record_bytes} bytes. Is this a CSV file?")


def _describe_missing_header(name: str, layout: Layout, *, empty: bool) -> str:
    if layout.header_row is not None and not empty:
        return f"{name} has no row {layout.header_row}, which should be its header (header_row)."
    return f"{name} is empty: it has no header row."


def _detect_dialect(buffer: bytes, dialect: Dialect, *, final: bool, layout: Layout) -> Dialect:
    marks = [mark for mark in DELIMITERS if mark not in {dialect.quote, dialect.comment}]
    if not layout.columns:  # a delimiter that does not occur would give the header one field, so it is never chosen
        marks = [mark for mark in marks if mark.encode() in buffer]
    last_row = layout.header_row and layout.header_row + layout.header_rows - 1
    samples = {mark: _sample(buffer, replace(dialect, delimiter=mark), final=final) for mark in marks}
    return replace(
        dialect, delimiter=choose_delimiter(samples, last_row, len(layout.columns), preamble=layout.preamble)
    )


def _sample(buffer: bytes, dialect: Dialect, *, final: bool) -> list[SampleRecord]:
    records = enumerate(iter_records(buffer, final=final, dialect=dialect), start=1)
    return list(islice(((row, fields) for row, (fields, _, _) in records if fields), SAMPLE_RECORDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CsvTop:
    """The beginning of a file, read in one dialect. ``skipped``: the length of a first line with the separator; else 0."""

    buffer: bytes
    final: bool
    dialect: Dialect
    layout: Layout
    skipped: int

    def header(self, file: TextFile, name: str) -> Header | None:
        """Return the header; None if the buffer does not contain the whole header."""
        if self.layout.columns:
            return self._header(file, self.layout.columns, last_row=1 if self.skipped else 0, end=self.skipped)
        sample = _sample(self.buffer, self.dialect, final=self.final)
        wanted = find_header(
            sample[1:] if self.skipped else sample, self.layout.header_row, preamble=self.layout.preamble
        )
        if wanted is None and self.layout.header_row is None:
            return None
        row_wanted = wanted[0] if wanted is not None else self.layout.header_row or 1
        below = enumerate(iter_records(self.buffer, final=self.final, dialect=self.dialect), start=1)
        found = ((row, *record) for row, record in below if record[0] and row >= row_wanted)
        count = self.layout.header_rows
        rows = list(islice(found, count + self.layout.units_row))
        if rows and rows[0][0] != row_wanted:
            raise SourceBroken(f"{name}: the header row {row_wanted} (header_row) is blank.")
        for _, _, start, end in rows[:count]:
            self._check_quotes(start, end, name)
        if len(rows) < count + self.layout.units_row:
            if rows and self.final:
                raise SourceBroken(f"{name} ends before {self._missing(len(rows))}.")
            return None
        names = _validate_names(
            _joined([fields for _, fields, _, _ in rows[:count]]), name, self.layout, file.encoding.name
        )
        last_row, last, _, end = rows[-1]
        units = dict(zip(names, (escape_stray_bytes(unit).strip() for unit in last), strict=False))
        header = self._header(file, names, row=row_wanted, last_row=last_row, end=end)
        return replace(header, units=units if self.layout.units_row else {}, preamble=self._preamble(row_wanted, name))

    def _missing(self, rows: int) -> str:
        """Return which row is missing if the header has only ``rows`` rows."""
        if rows < self.layout.header_rows:
            return f"the last of its {self.layout.header_rows} header rows (header_rows)"
        return "the row of units that should follow its header (units_row)"

    def _header(self, file: TextFile, names: tuple[str, ...], *, row: int = 0, last_row: int, end: int) -> Header:
        """Build the header. ``last_row``: the number of its last row. ``end``: the offset of its end in the buffer."""
        location = RecordLocation(offset=file.encoding.mark + end, row=last_row)
        return Header(names=names, row=row, dialect=self.dialect, end=location, rest=self.buffer[end:])

    def _preamble(self, header_row: int, name: str) -> Mapping[str, str]:
        """Return the facts in the rows above the header, including comment lines."""
        if not self.layout.preamble:
            return {}
        whole = replace(self.dialect, comment="")
        rows = iter_records(self.buffer, final=self.final, dialect=whole)
        above = islice(rows, 1 if self.skipped else 0, header_row - 1)
        return preamble_facts((fields for fields, _, _ in above), name, separator=self.dialect.delimiter)

    def _check_quotes(self, start: int, end: int, name: str) -> None:
        if self.final and is_unterminated(self.buffer[start:], self.dialect):
            raise SourceBroken(f"{name}: the header row opens a quote that is never closed.")
        if not is_cleanly_quoted(self.buffer[start:end], self.dialect):
            raise SourceBroken(f"{name}: the header row has text after a closing quote. Write such quotes twice.")


def _continued(left: str, cell: str) -> str:
    return cell or left


def _joined(head: Sequence[list[str]]) -> list[str]:
    """Return the names of the columns. An empty cell above the last header row continues the cell on its left."""
    if len(head) == 1:
        return head[0]
    width = max(map(len, head))
    rows = [[cell.strip() for cell in fields] + [""] * (width - len(fields)) for fields in head]
    upper = [list(accumulate(row, _continued)) for row in rows[:-1]]
    return joined_names([*upper, rows[-1]])


def _validate_names(fields: list[str], file: str, layout: Layout, encoding: str) -> tuple[str, ...]:
    """Return the fields as column names; raise `SourceBroken` if they are not text, or if `named_columns` rejects them."""
    if [escape_stray_bytes(name) for name in fields] != fields or any("\0" in name for name in fields):
        raise SourceBroken(
            f"{file}: the header row is not {encoding.upper()} text. Save the file as CSV UTF-8, or set encoding."
        )
    return named_columns(fields, file, layout.naming)
