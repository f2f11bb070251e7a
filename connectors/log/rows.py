"""The rows of a growing file: how its beginning says it is to be read, where whole records end, and the records themselves."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

import polars as pl

from connectors.formats import Format, RecordChunk, RecordLocation
from connectors.formats.csv import Csv, read_csv
from connectors.formats.csv.detection import (
    DELIMITERS,
    SAMPLE_RECORDS,
    Record,
    choose_delimiter,
    is_header,
    separator_line,
)
from connectors.formats.csv.dialect import Dialect
from connectors.formats.csv.header import read_header
from connectors.formats.csv.tolerant import iter_records
from connectors.formats.ndjson import Ndjson, read_ndjson
from connectors.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, escape_stray_bytes
from connectors.formats.text import Encoding, encoding_by_name, open_text
from connectors.log.cursor import NO_COLUMNS, FileTop, LogColumns
from connectors.log.lines import LineScanner
from ingestd.sdk import Reject, SourceBroken

GrowableFormat: TypeAlias = Csv | Ndjson
_SHOWN_BYTES = 1000


def require_growable(file_format: Format, name: str) -> GrowableFormat:
    """``file_format``, if files of it can grow.

    Raises:
        SourceBroken: they can't.
    """
    if isinstance(file_format, Csv | Ndjson):
        return file_format
    raise SourceBroken(
        f"{name} is no CSV and no NDJSON, and nothing else grows by lines. Set format, or narrow pattern."
    )


def parse_top(file_format: GrowableFormat, buffer: bytes, name: str, known: LogColumns = NO_COLUMNS) -> FileTop | None:
    """How a file is to be read that begins with ``buffer``; None: its beginning is not all there yet.

    ``known``: the columns of the log's earlier files. A program that writes its header once writes none into a file that was
    cut (copytruncate), so the content decides whether the first row is one.
    """
    encoding = open_text(io.BytesIO(buffer), file_format.encoding).encoding
    lines = LineScanner(encoding.codec)
    end = encoding.mark + lines.last_end(buffer[encoding.mark :])
    if end == encoding.mark:
        return None
    if isinstance(file_format, Ndjson):
        return FileTop(encoding=encoding.codec, end=encoding.mark, guessed=encoding.guessed)
    return _parse_csv_top(file_format, buffer[encoding.mark : end], encoding, lines=lines, name=name, known=known)


def create_row_reader(file_format: GrowableFormat, top: FileTop, head: bytes, name: str) -> RowReader:
    """What reads the rows; ``head``: the first ``top.end`` bytes of the file.

    Raises:
        SourceBroken: the header can't name columns.
    """
    return _CsvRowReader(file_format, top, head, name) if isinstance(file_format, Csv) else _NdjsonRowReader(top, name)


class RowReader(ABC):
    """Reads the rows of one file from bytes that begin at a record. ``facts``: what its beginning told; ``columns``: of CSV."""

    facts: Mapping[str, str]
    columns: LogColumns = NO_COLUMNS

    def __init__(self, top: FileTop, name: str) -> None:
        self.lines = LineScanner(top.encoding)
        self._name = name

    @abstractmethod
    def complete(self, buffer: bytes) -> int:
        """How many bytes of the buffer are whole records."""

    @abstractmethod
    def first(self, buffer: bytes) -> int:
        """How many bytes of the buffer are its first record; 0 where that is not all there."""

    def read(self, chunk: bytes, row: int) -> Iterator[RecordChunk]:
        """The records of a chunk that holds whole ones, the first in the row after ``row``."""
        return self._read(self.lines.utf8(chunk), RecordLocation(row=row))

    @abstractmethod
    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]: ...

    def stray(self, line: bytes, row: int, seconds: float) -> RecordChunk:
        """A line that opens a quote which nobody closed in time: parked."""
        reason = (
            f"Row {row + 1} opens a quote that was not closed within {seconds:g} seconds (idle_seconds); the lines below it are"
            " read by themselves."
        )
        return self._parked(line, row, reason)

    def too_large(self, beginning: bytes, row: int) -> RecordChunk:
        """A line that is larger than we care to hold: parked."""
        return self._parked(
            beginning, row, f"Row {row + 1} is larger than {RECORD_BYTES} bytes, more than one may have."
        )

    def _parked(self, line: bytes, row: int, reason: str) -> RecordChunk:
        text = self.lines.utf8(line[:_SHOWN_BYTES]).decode("utf-8", "surrogateescape").rstrip("\r\n")
        reject = Reject(position=row + 1, reason=reason, record={"text": escape_stray_bytes(text)})
        nothing = pl.Series("position", [], dtype=pl.Int64)
        return RecordChunk(
            records=pl.DataFrame(), positions=nothing, rejects=(reject,), end=RecordLocation(row=row + 1)
        )


class _NdjsonRowReader(RowReader):
    def __init__(self, top: FileTop, name: str) -> None:
        super().__init__(top, name)
        self.facts = replace(encoding_by_name(top.encoding), guessed=top.guessed).facts

    def complete(self, buffer: bytes) -> int:
        return self.lines.last_end(buffer)

    def first(self, buffer: bytes) -> int:
        return self.lines.first_end(buffer)

    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]:
        return read_ndjson(io.BytesIO(text), self._name, encoding="utf-8", start=start, block_bytes=_all_of(text))


class _CsvRowReader(RowReader):
    def __init__(self, file_format: Csv, top: FileTop, head: bytes, name: str) -> None:
        super().__init__(top, name)
        self._dialect = replace(file_format.dialect, delimiter=top.delimiter)
        self._quote = self._dialect.quote.encode()
        self._layout = replace(file_format.layout, header_row=None, units_row=False)
        encoding = replace(encoding_by_name(top.encoding), guessed=top.guessed)
        self.facts: dict[str, str] = {**encoding.facts, "file.delimiter": self._dialect.delimiter_name}
        if file_format.columns is None and top.columns.names:
            self._use(top.columns)
        elif file_format.columns is None:
            layout = replace(file_format.layout, header_row=top.header_row)
            header = read_header(
                open_text(io.BytesIO(head), top.encoding), name,
                dialect=self._dialect, layout=layout, block_bytes=BLOCK_BYTES, record_bytes=RECORD_BYTES,
            )  # fmt: skip
            self._use(LogColumns(names=header.names, units=tuple(header.units.items())))
            self.facts |= {"file.header_row": str(header.row)}

    def _use(self, columns: LogColumns) -> None:
        self.columns = columns
        self._layout = replace(self._layout, columns=columns.names)
        self.facts |= {f"units.{column}": unit for column, unit in columns.units}

    def complete(self, buffer: bytes) -> int:
        end = self.lines.last_end(buffer)
        text = self.lines.utf8(buffer[:end])
        if not self._quote or self._quote not in text:
            return end
        last = deque(iter_records(text, final=False, dialect=self._dialect), maxlen=1)
        return self._in_source(buffer, text, last[0][2]) if last else 0

    def first(self, buffer: bytes) -> int:
        text = self.lines.utf8(buffer[: self.lines.last_end(buffer)])
        record = next(iter_records(text, final=False, dialect=self._dialect), None)
        return 0 if record is None else self._in_source(buffer, text, record[2])

    def _in_source(self, buffer: bytes, text: bytes, end: int) -> int:
        return end if self.lines.is_utf8 else self.lines.end_of(buffer, text.count(b"\n", 0, end))

    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]:
        return read_csv(
            io.BytesIO(text), self._name,
            dialect=self._dialect, layout=self._layout, encoding="utf-8", start=start, block_bytes=_all_of(text),
        )  # fmt: skip


def _all_of(text: bytes) -> int:
    """So that what is read at once is one stretch."""
    return max(len(text), 1)


def _parse_csv_top(
    file_format: Csv, buffer: bytes, encoding: Encoding, *, lines: LineScanner, name: str, known: LogColumns
) -> FileTop | None:
    """``buffer``: the whole lines of the file's beginning, without a mark."""
    text = lines.utf8(buffer)
    hint = separator_line(text)
    asked = (
        file_format.dialect
        if file_format.dialect.delimiter or not hint
        else replace(file_format.dialect, delimiter=hint[0])
    )
    samples = {
        mark: [record for record in _sample(text, replace(asked, delimiter=mark)) if not (hint and record[0] == 1)]
        for mark in ((asked.delimiter,) if asked.delimiter else DELIMITERS)
        if mark not in {asked.quote, asked.comment}
    }
    any_records = next((records for records in samples.values() if records), [])
    if not any_records:
        return None
    # Only what stands above decides, never how much was there already at the first look.
    header_row = file_format.header_row or any_records[0][0]
    chosen = asked.delimiter or _delimiter(samples, header_row, file_format, known)

    def in_source(end: int) -> int:
        return encoding.mark + (end if lines.is_utf8 else lines.end_of(buffer, text.count(b"\n", 0, end)))

    headless = FileTop(encoding=encoding.codec, delimiter=chosen, end=encoding.mark, guessed=encoding.guessed)
    if hint:
        headless = replace(headless, end=in_source(hint[1]), rows=1)
    if file_format.columns is not None:
        return headless
    rows = _rows_from(header_row, text, replace(asked, delimiter=chosen))
    first = next(rows, None)
    if first is None:
        return None
    if known.names and not is_header(first[1], known.names):
        return replace(headless, columns=known)
    if not first[1]:
        raise SourceBroken(f"{name}: row {header_row}, where its header should be (header_row), is blank.")
    last = next((row for row in rows if row[1]), None) if file_format.units_row else first
    return last and replace(headless, header_row=header_row, end=in_source(last[2]), rows=last[0])


def _rows_from(header_row: int, text: bytes, dialect: Dialect) -> Iterator[tuple[int, list[str], int]]:
    """Number, fields and end of each row from the header's on."""
    for row, (fields, _, end) in enumerate(iter_records(text, final=False, dialect=dialect), start=1):
        if row >= header_row:
            yield row, fields, end


def _delimiter(samples: Mapping[str, Sequence[Record]], header_row: int, file_format: Csv, known: LogColumns) -> str:
    """As the log's earlier files, if the first row has as many fields as their header; else as the beginning shows."""
    for mark, records in samples.items():
        if known.names and file_format.columns is None and records and len(records[0][1]) == len(known.names) > 1:
            return mark
    return choose_delimiter(samples, header_row, len(file_format.columns or ()))


def _sample(text: bytes, dialect: Dialect) -> list[Record]:
    records = enumerate(iter_records(text, final=False, dialect=dialect), start=1)
    return list(islice(((row, fields) for row, (fields, _, _) in records if fields), SAMPLE_RECORDS))
