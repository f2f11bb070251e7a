"""The CSV reader: reads as Python's csv module, in bounded memory.

By columns if that provably gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from connectors.formats.csv.dialect import UNDETECTED, Dialect
from connectors.formats.csv.fast import end_of_last_record, is_utf8, read_fast
from connectors.formats.csv.header import Header, read_header
from connectors.formats.csv.layout import DEFAULT_LAYOUT, Layout
from connectors.formats.csv.scanner import RecordScanner
from connectors.formats.csv.tolerant import (
    build_reject,
    count_extra_lines,
    describe_extra_lines,
    find_fault,
    is_cleanly_quoted,
    is_unterminated,
    iter_records,
)
from connectors.formats.frames import rows_to_frame
from connectors.formats.record_chunk import (
    BLOCK_BYTES,
    RECORD_BYTES,
    RecordChunk,
    RecordLocation,
    escape_stray_bytes,
    row_positions,
)
from connectors.formats.text import DETECT, TextFile, open_text
from ingestd.sdk import Reject

SMALL_BYTES = 4 * 1024
"""The rest of a file up to this size is read record by record: a call of polars costs more than so few records."""

_SHOWN_BYTES = 1000


def read_csv(
    file: BinaryIO,
    name: str,
    *,
    dialect: Dialect = UNDETECTED,
    layout: Layout = DEFAULT_LAYOUT,
    encoding: str = DETECT,
    start: RecordLocation | None = None,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
) -> Iterator[RecordChunk]:
    """Yield the records of a CSV file, at least one chunk.

    Whatever ``dialect`` and ``encoding`` leave open is detected. Values are the exact text of the file, including spaces;
    an empty cell is the empty text. A position is the row number as in a spreadsheet, from 1. A blank line has a number but
    is no record. ``start``: the ``end`` of an earlier chunk (None: the beginning), for files in UTF-8. Records that don't
    fit are rejected, and the others are read.

    Raises:
        SourceBroken: the file is empty or its header can't name columns.
    """
    text = open_text(file, encoding)
    header = read_header(text, name, dialect=dialect, layout=layout, block_bytes=block_bytes, record_bytes=record_bytes)
    reader = _BlockReader(text, header, layout, record_bytes)
    facts = _facts(text, header)
    if start is None:
        chunks = reader.chunks(header.rest, header.end, block_bytes)
    else:
        text.seek(start.offset)
        chunks = reader.chunks(b"", start, block_bytes)
    location = start or header.end
    is_empty = True
    for chunk in chunks:
        is_empty = False
        location = chunk.end
        yield replace(chunk, facts=facts)
    if is_empty:
        records = rows_to_frame([], header.names)
        yield RecordChunk(
            records=records, positions=row_positions([]), rejects=(), end=location, header=True, facts=facts
        )


def _facts(text: TextFile, header: Header) -> dict[str, str]:
    """Return how the file was understood: encoding, delimiter, header row and units."""
    units = {f"units.{column}": unit for column, unit in header.units.items()}
    row = {"file.header_row": str(header.row)} if header.row else {}
    return {**text.encoding.facts, "file.delimiter": header.dialect.delimiter_name, **row, **units, **header.preamble}


class _BlockReader:
    """Reads blocks behind the header. It keeps only the columns' names."""

    def __init__(self, file: TextFile, header: Header, layout: Layout, record_bytes: int) -> None:
        self._file = file
        self._names = header.names
        self._dialect = header.dialect
        self._fills = layout.ragged == "fill"
        self._record_bytes = record_bytes

    def chunks(self, buffer: bytes, location: RecordLocation, block_bytes: int) -> Iterator[RecordChunk]:
        final = False
        while not final or buffer:
            if not final:
                more = self._file.read(block_bytes)
                final = not more
                buffer += more
                if not buffer:
                    return
            chunk = self._read_fast(buffer, location, final=final) or self._read_tolerant(buffer, location, final=final)
            if chunk is not None:
                buffer = buffer[chunk.end.offset - location.offset :]
            elif len(buffer) > self._record_bytes:
                chunk, buffer = self._skip_record(buffer, location)
            else:
                continue
            location = chunk.end
            yield chunk

    def _read_fast(self, buffer: bytes, location: RecordLocation, *, final: bool) -> RecordChunk | None:
        if final and len(buffer) <= SMALL_BYTES:
            return None
        end = len(buffer) if final else end_of_last_record(buffer, self._dialect)
        if not 0 < end <= self._record_bytes:  # in a larger block a record might be too large
            return None
        records = read_fast(buffer[:end], self._names, self._dialect)
        if records is None:
            return None
        row = location.row + records.height
        positions = row_positions(range(location.row + 1, row + 1))
        return RecordChunk(
            records=records,
            positions=positions,
            rejects=(),
            end=RecordLocation(offset=location.offset + end, row=row),
            header=True,
        )

    def _read_tolerant(self, buffer: bytes, location: RecordLocation, *, final: bool) -> RecordChunk | None:
        """Read all whole records of the buffer; return None if it holds none."""
        rows: list[Sequence[str | None]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        row, end, columns = location.row, 0, len(self._names)
        sound = b"\0" not in buffer and is_utf8(buffer)
        quoted = bool(self._dialect.quote) and self._dialect.quote.encode() in buffer
        for fields, start, end in iter_records(buffer, final=final, dialect=self._dialect):
            row += 1
            if not fields:
                continue
            clean = not quoted or is_cleanly_quoted(buffer[start:end], self._dialect)
            if sound and clean and len(fields) == columns and end - start <= self._record_bytes and end < len(buffer):
                rows.append(fields)  # the usual case comes first
                numbers.append(row)
            elif end - start > self._record_bytes:
                rejects.append(
                    self._reject_too_large(
                        buffer[start : start + _SHOWN_BYTES], row, count_extra_lines(buffer[start:end])
                    )
                )
            elif final and end == len(buffer) and is_unterminated(buffer[start:], self._dialect):
                lines = describe_extra_lines(buffer[start:])
                reason = f"Row {row} opens a quote that is not closed before the end of the file{lines}."
                rejects.append(build_reject(fields, self._names, row, reason))
            elif not clean:
                rejects.append(_reject_bad_quotes(buffer[start:end], row))
            elif reason := find_fault(fields, self._expected_fields(fields), row, self._file.encoding.name):
                rejects.append(build_reject(fields, self._names, row, reason))
            else:
                rows.append([*fields, *[None] * (columns - len(fields))])
                numbers.append(row)
        if not end:
            return None
        return RecordChunk(
            records=rows_to_frame(rows, self._names),
            positions=row_positions(numbers),
            rejects=tuple(rejects),
            end=RecordLocation(offset=location.offset + end, row=row),
            header=True,
        )

    def _expected_fields(self, fields: Sequence[str]) -> int:
        """Return how many fields this record should have."""
        return min(len(fields), len(self._names)) if self._fills else len(self._names)

    def _skip_record(self, buffer: bytes, location: RecordLocation) -> tuple[RecordChunk, bytes]:
        """Reject a record above the size limit, and return the bytes that were read beyond its end."""
        beginning = buffer[:_SHOWN_BYTES]
        scanner = RecordScanner(self._dialect)
        offset, lines = location.offset, 0
        rest = b""
        while buffer:
            end = scanner.feed(buffer)
            if end is not None:
                offset, rest = offset + end, buffer[end:]
                lines += buffer[: max(0, end - 2)].count(b"\n")  # without the one that ends the record
                break
            offset += len(buffer)
            lines += buffer.count(b"\n")
            buffer = self._file.read(BLOCK_BYTES)
        reject = self._reject_too_large(beginning, location.row + 1, lines)
        chunk = RecordChunk(
            records=rows_to_frame([], self._names),
            positions=row_positions([]),
            rejects=(reject,),
            end=RecordLocation(offset=offset, row=location.row + 1),
            header=True,
        )
        return chunk, rest

    def _reject_too_large(self, beginning: bytes, row: int, lines: int) -> Reject:
        reason = (
            f"Row {row} is larger than {self._record_bytes} bytes and spans {lines} more lines. Most often a quote was"
            " opened and not closed; check the beginning of the row."
        )
        text = escape_stray_bytes(beginning.decode("utf-8", "surrogateescape"))
        return Reject(position=row, reason=reason, record={"text": text})


def _reject_bad_quotes(record: bytes, row: int) -> Reject:
    reason = (
        f"Row {row} has text behind a closing quote{describe_extra_lines(record)}. Write each quote within a quoted field"
        " twice, and close each field that begins with a quote."
    )
    text = escape_stray_bytes(record.decode("utf-8", "surrogateescape").rstrip("\r\n")).replace("\0", "\\x00")
    return Reject(position=row, reason=reason, record={"text": text})
