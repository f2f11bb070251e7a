"""The rows of a growing file: parse the top of the file, find the ends of complete records, and read records."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO, TypeAlias, cast

import polars as pl
from msgspec.structs import replace

from connectors.formats import Format, RecordChunk, RecordLocation, resolve_format
from connectors.formats.column_order import ColumnOrder
from connectors.formats.csv import Csv
from connectors.formats.csv.detection import (
    DELIMITERS,
    SAMPLE_RECORDS,
    SampleRecord,
    choose_delimiter,
    is_header,
    separator_line,
)
from connectors.formats.csv.dialect import Dialect
from connectors.formats.csv.header import read_header
from connectors.formats.csv.reader import read_csv
from connectors.formats.csv.tolerant import iter_records
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.reader import read_ndjson
from connectors.formats.text import Encoding, TextFile, encoding_by_name, open_text
from connectors.formats.text.lines import SHOWN, shown_text
from connectors.formats.text_lines import TextLines, TextRecords, ignored_notice
from connectors.log.cursor import NO_COLUMNS, FileTop, LogColumns
from ingestd.sdk import NOTICE, Reject, SourceBroken
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, row_positions

GrowableFormat: TypeAlias = Csv | Ndjson | TextLines
_GROWABLE = (Csv, Ndjson, TextLines)


def growable_format(name: str, configured: str | Format | None) -> GrowableFormat:
    """Return the format of the log ``name``. Only some formats are suitable for files that grow.

    Raises:
        SourceBroken: the suffix of the name belongs to another format, or to a packed file.
    """
    found = resolve_format(name, configured, among=_GROWABLE)
    if isinstance(found, _GROWABLE):
        return found
    raise SourceBroken(f"{name} is a packed file, which can't be read as a log that grows. Narrow pattern.")


def parse_top(file_format: GrowableFormat, buffer: bytes, name: str, known: LogColumns = NO_COLUMNS) -> FileTop | None:
    """Return the top of a file that begins with ``buffer``; None if the buffer does not hold the whole top yet.

    ``known``: the columns of the log's earlier files. After a file was truncated (copytruncate), many programs write no new
    header. So the content of the first row decides whether it is a header.

    Raises:
        SourceBroken: the header can't name columns.
    """
    encoding = open_text(io.BytesIO(buffer), file_format.encoding).encoding
    lines = LineScanner(encoding.codec)
    end = encoding.mark + lines.last_end(buffer[encoding.mark :])
    if end == encoding.mark:
        return None
    if not isinstance(file_format, Csv):
        return FileTop(encoding=encoding.codec, end=encoding.mark, guessed=encoding.guessed)
    return _parse_csv_top(file_format, buffer[encoding.mark : end], encoding, lines=lines, name=name, known=known)


def create_row_reader(file_format: GrowableFormat, top: FileTop, head: bytes, name: str) -> RowReader:
    """Return the reader of a file's rows. ``head``: the first ``top.end`` bytes of the file.

    Raises:
        SourceBroken: the header can't name columns.
    """
    if isinstance(file_format, Csv):
        return _CsvRowReader(file_format, top, head, name)
    if isinstance(file_format, TextLines):
        return _TextRowReader(file_format, top, name)
    return _NdjsonRowReader(top, name)


class LineScanner:
    """Finds the ends of lines in one encoding. ``feed``: the bytes of a line feed. ``width``: the length of ``feed``."""

    def __init__(self, encoding: str) -> None:
        self._encoding: Encoding = encoding_by_name(encoding)
        wide = {"utf-16": 2, "utf-32": 4}.get(self._encoding.codec[:6], 1)
        self.feed = (10).to_bytes(wide, "big" if self._encoding.codec.endswith("be") else "little")
        self.width = wide
        self.encoding = self._encoding.name
        self.is_utf8 = self._encoding.is_utf8

    def last_end(self, data: bytes) -> int:
        """Return the offset after the last line feed; 0 if there is none."""
        at = data.rfind(self.feed)
        while at >= 0 and at % self.width:
            at = data.rfind(self.feed, 0, at + self.width - 1)
        return at + self.width if at >= 0 else 0

    def end_of(self, data: bytes, count: int) -> int:
        """Return the offset after the first ``count`` line feeds. The data must have at least as many."""
        end = 0
        for _ in range(count):
            end = self.first_end(data, end)
        return end

    def first_end(self, data: bytes, start: int = 0) -> int:
        """Return the offset after the first line feed from ``start`` on; 0 if there is none."""
        at = data.find(self.feed, start)
        while at >= 0 and at % self.width:
            at = data.find(self.feed, at + 1)
        return at + self.width if at >= 0 else 0

    def utf8(self, data: bytes) -> bytes:
        """Return the text as UTF-8. Bytes that are invalid in the encoding become bytes that are invalid in UTF-8."""
        if self._encoding.is_utf8:
            return data
        text = TextFile(cast("BinaryIO", io.BytesIO()), data, self._encoding, ended=True)
        return b"".join(iter(lambda: text.read(len(data)), b""))


class RowReader(ABC):
    """Reads the rows of one file from bytes that begin at a record.

    ``top``: the top of the file. ``facts``: the facts from the top, which are added to every chunk. ``columns``: the columns of
    a CSV file. ``next_columns``: the columns of the rows that follow the rows that were read last. ``ends_with_next``: a record
    may continue in the next line, so it ends only when the next record begins, or after a time limit.
    """

    facts: dict[str, str]
    columns: LogColumns = NO_COLUMNS
    next_columns: LogColumns = NO_COLUMNS
    ends_with_next = False

    def __init__(self, top: FileTop, name: str) -> None:
        self.top = top
        self.lines = LineScanner(top.encoding)
        self._name = name
        self.facts = replace(encoding_by_name(top.encoding), guessed=top.guessed).facts

    @abstractmethod
    def complete_length(self, buffer: bytes) -> int:
        """Return the length of all complete records at the start of the buffer, in bytes."""

    @abstractmethod
    def first_length(self, buffer: bytes) -> int:
        """Return the length of the first record of the buffer, in bytes; 0 if it is not complete."""

    def read(self, block: bytes, row: int) -> Iterator[RecordChunk]:
        """Yield the records of ``block``, which has only complete records. The first record is in the row after ``row``."""
        for chunk in self._read(self.lines.utf8(block), RecordLocation(row=row)):
            notices = [facts[NOTICE] for facts in (self.facts, chunk.facts) if NOTICE in facts]
            yield replace(chunk, facts={**self.facts, **({NOTICE: " ".join(notices)} if notices else {})})

    @abstractmethod
    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]: ...

    def reject_open_quote(self, line: bytes, row: int, seconds: float) -> RecordChunk:
        """Return a chunk that rejects a line, because it opens a quote that was not closed within ``seconds``."""
        reason = (
            f"The row opens a quote that was not closed within {seconds:g} seconds (idle_seconds); the lines below it are"
            " read separately."
        )
        return self._reject(line, row, reason)

    def reject_too_large(self, beginning: bytes, row: int) -> RecordChunk:
        """Return a chunk that rejects a line that exceeds the size limit. ``beginning``: the first bytes of the line."""
        return self._reject(beginning, row, f"The row is larger than {RECORD_BYTES} bytes, the limit for a row.")

    def _reject(self, line: bytes, row: int, reason: str) -> RecordChunk:
        text = shown_text(self.lines.utf8(line[:SHOWN])).rstrip("\r\n")
        reject = Reject(position=row + 1, reason=reason, record={"text": text})
        return RecordChunk(
            records=pl.DataFrame(),
            positions=row_positions([]),
            rejects=(reject,),
            end=RecordLocation(row=row + max(1, self.lines.utf8(line).count(b"\n"))),
            facts=self.facts,
        )

    def source_offset(self, buffer: bytes, text: bytes, end: int) -> int:
        """Return the offset in ``buffer`` that is ``end`` in its UTF-8 form ``text``. ``end`` must follow a line feed."""
        return end if self.lines.is_utf8 else self.lines.end_of(buffer, text.count(b"\n", 0, end))


class _NdjsonRowReader(RowReader):
    def complete_length(self, buffer: bytes) -> int:
        return self.lines.last_end(buffer)

    def first_length(self, buffer: bytes) -> int:
        return self.lines.first_end(buffer)

    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]:
        return read_ndjson(io.BytesIO(text), self._name, encoding="utf-8", start=start, block_bytes=_one_block(text))


class _TextRowReader(RowReader):
    def __init__(self, file_format: TextLines, top: FileTop, name: str) -> None:
        super().__init__(top, name)
        self._records = TextRecords(file_format, self.lines.encoding)
        self.ends_with_next = file_format.multiline is not None

    def complete_length(self, buffer: bytes) -> int:
        text = self._whole_lines(buffer)
        return self.source_offset(buffer, text, self._records.complete_length(text))

    def first_length(self, buffer: bytes) -> int:
        text = self._whole_lines(buffer)
        return self.source_offset(buffer, text, self._records.first_length(text))

    def _whole_lines(self, buffer: bytes) -> bytes:
        return self.lines.utf8(buffer[: self.lines.last_end(buffer)])

    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]:
        chunk, ignored = self._records.read(text, start)
        yield replace(chunk, facts={NOTICE: ignored_notice(ignored)} if ignored else {})


class _CsvRowReader(RowReader):
    def __init__(self, file_format: Csv, top: FileTop, head: bytes, name: str) -> None:
        super().__init__(top, name)
        self._dialect = replace(file_format.dialect, delimiter=top.delimiter)
        self._quote = self._dialect.quote.encode()
        self._layout = replace(file_format.layout, header_row=None, units_row=False)
        self.facts |= {"file.delimiter": self._dialect.delimiter_name}
        if file_format.columns is None and top.columns.names:
            self._use_columns(top.columns)
            self.facts |= {"file.header_row": str(top.header_row)} if top.header_row else {}
        elif file_format.columns is None:
            layout = replace(file_format.layout, header_row=top.header_row)
            header = read_header(
                open_text(io.BytesIO(head), top.encoding), name,
                dialect=self._dialect, layout=layout, block_bytes=BLOCK_BYTES, record_bytes=RECORD_BYTES,
            )  # fmt: skip
            self._use_columns(LogColumns(names=header.names, units=tuple(header.units.items())))
            self.facts |= {"file.header_row": str(header.row)}

    def _use_columns(self, columns: LogColumns) -> None:
        self.columns = self.next_columns = columns
        self._layout = replace(self._layout, columns=columns.names)
        self.facts |= {f"units.{column}": unit for column, unit in columns.units}

    def complete_length(self, buffer: bytes) -> int:
        end = self.lines.last_end(buffer)
        text = self.lines.utf8(buffer[:end])
        if not self._quote or self._quote not in text:
            return end
        last = deque(iter_records(text, final=False, dialect=self._dialect), maxlen=1)
        return self.source_offset(buffer, text, last[0][2]) if last else 0

    def first_length(self, buffer: bytes) -> int:
        text = self.lines.utf8(buffer[: self.lines.last_end(buffer)])
        record = next(iter_records(text, final=False, dialect=self._dialect), None)
        return 0 if record is None else self.source_offset(buffer, text, record[2])

    def _read(self, text: bytes, start: RecordLocation) -> Iterator[RecordChunk]:
        order = ColumnOrder(self.columns.names)
        yield from read_csv(
            io.BytesIO(text), self._name,
            dialect=self._dialect, layout=self._layout, encoding="utf-8", start=start, block_bytes=_one_block(text),
            order=order,
        )  # fmt: skip
        self.next_columns = replace(self.columns, names=order.names)


def _one_block(text: bytes) -> int:
    """Return a block size with which the whole text becomes one chunk."""
    return max(len(text), 1)


def _parse_csv_top(
    file_format: Csv, buffer: bytes, encoding: Encoding, *, lines: LineScanner, name: str, known: LogColumns
) -> FileTop | None:
    """Return the top of a CSV file. ``buffer``: the first complete lines of the file, without a byte order mark."""
    text = lines.utf8(buffer)
    hint = separator_line(text)
    configured = file_format.dialect
    dialect = configured if configured.delimiter or not hint else replace(configured, delimiter=hint[0])
    samples = {
        mark: [record for record in _sample(text, replace(dialect, delimiter=mark)) if not (hint and record[0] == 1)]
        for mark in ((dialect.delimiter,) if dialect.delimiter else DELIMITERS)
        if mark not in {dialect.quote, dialect.comment}
    }
    any_records = next((records for records in samples.values() if records), [])
    if not any_records:
        return None
    # Only the first row determines the delimiter. So the result is the same however many rows the first reading finds.
    header_row = file_format.header_row or any_records[0][0]
    delimiter = dialect.delimiter or _choose_delimiter(samples, header_row, file_format, known)

    def source_offset(end: int) -> int:
        return encoding.mark + (end if lines.is_utf8 else lines.end_of(buffer, text.count(b"\n", 0, end)))

    headless = FileTop(encoding=encoding.codec, delimiter=delimiter, end=encoding.mark, guessed=encoding.guessed)
    if hint:
        headless = replace(headless, end=source_offset(hint[1]), rows=1)
    if file_format.columns is not None:
        return headless
    rows = _rows_from(header_row, text, replace(dialect, delimiter=delimiter))
    first = next(rows, None)
    if first is None:
        return None
    if known.names and not is_header(first[1], known.names):
        return replace(headless, columns=known)
    if not first[1]:
        raise SourceBroken(f"{name}: the header row {header_row} (header_row) is blank.")
    last = next((row for row in rows if row[1]), None) if file_format.units_row else first
    return last and replace(headless, header_row=header_row, end=source_offset(last[2]), rows=last[0])


def _rows_from(header_row: int, text: bytes, dialect: Dialect) -> Iterator[tuple[int, list[str], int]]:
    """Yield the row number, the fields and the end offset of the header row and of each row after it."""
    for row, (fields, _, end) in enumerate(iter_records(text, final=False, dialect=dialect), start=1):
        if row >= header_row:
            yield row, fields, end


def _choose_delimiter(
    samples: Mapping[str, Sequence[SampleRecord]], header_row: int, file_format: Csv, known: LogColumns
) -> str:
    """Return the delimiter with which the first row has as many fields as the known header; else the best delimiter."""
    for mark, records in samples.items():
        if known.names and file_format.columns is None and records and len(records[0][1]) == len(known.names) > 1:
            return mark
    return choose_delimiter(samples, header_row, len(file_format.columns or ()))


def _sample(text: bytes, dialect: Dialect) -> list[SampleRecord]:
    records = enumerate(iter_records(text, final=False, dialect=dialect), start=1)
    return list(islice(((row, fields) for row, (fields, _, _) in records if fields), SAMPLE_RECORDS))
