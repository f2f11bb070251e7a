"""Reads the CSV records after the header, one block at a time.

polars reads a block by columns if the result is provably that of Python's csv module; else this module reads the records.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence

from connectors.formats.column_order import ColumnOrder
from connectors.formats.csv.detection import looks_like_header
from connectors.formats.csv.dialect import Layout
from connectors.formats.csv.fast import end_of_last_record, read_fast
from connectors.formats.csv.header import Header
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
from connectors.formats.text.lines import SHOWN, shown_text
from connectors.utf8 import is_utf8
from ingestd.sdk import Reject, counted
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RecordChunk, RecordLocation, escape_stray_bytes, row_positions

SMALL_BYTES = 4 * 1024
"""If the rest of a file is not larger, it is read record by record, because a call of polars would take longer."""


_OTHER_HEADER = (
    "The row begins with a byte order mark, and may be the header of another file that was appended here. The rows below"
    " it are read with the columns of the first header. Split the file if they have other columns."
)


class BlockReader:
    """Reads the blocks after the header. ``read``: returns about the given number of bytes of UTF-8 text; b"" at the end."""

    def __init__(
        self,
        read: Callable[[int], bytes],
        encoding: str,
        header: Header,
        layout: Layout,
        record_bytes: int,
        *,
        order: ColumnOrder | None = None,
    ) -> None:
        """``encoding``: the name of the file's encoding. ``order``: the order of the columns; None: the order of the header."""
        self._read = read
        self._encoding = encoding
        self._names = header.names
        self._dialect = header.dialect
        self._fills = layout.ragged == "fill"
        self._has_header = not layout.columns
        self._record_bytes = record_bytes
        self.order = order or ColumnOrder(header.names if self._has_header else ())

    def chunks(self, buffer: bytes, location: RecordLocation, block_bytes: int) -> Iterator[RecordChunk]:
        """Yield the records from ``location``, where ``buffer`` begins, to the end. Read ``block_bytes`` at a time."""
        final = False
        while not final or buffer:
            if not final:
                more = self._read(block_bytes)
                final = not more
                buffer += more
                if not buffer:
                    return
            chunk = self._read_fast(buffer, location, final=final) or self.read_tolerant(buffer, location, final=final)
            if chunk is not None:
                buffer = buffer[chunk.end.offset - location.offset :]
            elif len(buffer) > self._record_bytes:
                chunk, buffer = self.skip_record(buffer, location)
            else:
                continue
            location = chunk.end
            yield chunk

    def _read_fast(self, buffer: bytes, location: RecordLocation, *, final: bool) -> RecordChunk | None:
        if final and len(buffer) <= SMALL_BYTES:
            return None
        end = len(buffer) if final else end_of_last_record(buffer, self._dialect)
        return self.read_by_columns(buffer[:end], location) if end > 0 else None

    def read_by_columns(
        self, block: bytes, location: RecordLocation, *, lines: int | None = None
    ) -> RecordChunk | None:
        """Read a block of whole records by columns; return None if the result could differ from that of the csv module.

        ``lines``: the number of lines, if known. In a returned chunk, each line is one record, and no record is rejected.
        """
        if len(block) > self._record_bytes or self.order.is_changed:  # in a larger block a record might be too large
            return None
        records = read_fast(block, self._names, self._dialect, lines=lines)
        if records is None:
            return None
        if self.order.may_have_header(block, self._dialect.quote) and self.order.has_header(records):
            return None
        row = location.row + records.height
        positions = row_positions(range(location.row + 1, row + 1))
        return RecordChunk(
            records=records,
            positions=positions,
            end=RecordLocation(offset=location.offset + len(block), row=row),
            header=True,
        )

    def read_tolerant(self, buffer: bytes, location: RecordLocation, *, final: bool) -> RecordChunk | None:
        """Read the whole records of a buffer that begins at ``location``; None if the buffer has no whole record.

        ``final``: nothing follows the buffer.
        """
        rows: list[Sequence[str | None]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        row, end, columns = location.row, 0, len(self._names)
        sound = b"\0" not in buffer and is_utf8(buffer) and BOM_UTF8 not in buffer
        quoted = bool(self._dialect.quote) and self._dialect.quote.encode() in buffer
        for fields, start, end in iter_records(buffer, final=final, dialect=self._dialect):
            row += 1
            if not fields:
                continue
            clean = not quoted or is_cleanly_quoted(buffer[start:end], self._dialect)
            whole = len(fields) == columns and end - start <= self._record_bytes and end < len(buffer)
            repeated = self.order.find_header(fields)
            if sound and clean and whole and not repeated:
                rows.append(self.order.arrange(fields))  # the usual case comes first
                numbers.append(row)
            elif reject := self._find_reject(
                buffer[start:end], fields, row, repeated, is_last=final and end == len(buffer)
            ):
                rejects.append(reject)
            else:
                rows.append(self.order.arrange([*fields, *[None] * (columns - len(fields))]))
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

    def _find_reject(
        self, record: bytes, fields: Sequence[str], row: int, repeated: str, *, is_last: bool
    ) -> Reject | None:
        """Return the reject of a record; None if the record is valid.

        ``repeated``: a sentence if the record is a header; else empty. ``is_last``: the file ends with this record.
        """
        if len(record) > self._record_bytes:
            return self._reject_too_large(record, row, count_extra_lines(record))
        reason = repeated
        if record.startswith(BOM_UTF8):
            record = record[len(BOM_UTF8) :]
            if not reason and self._has_header and looks_like_header(fields):
                reason = _OTHER_HEADER
        if is_last and is_unterminated(record, self._dialect):
            lines = describe_extra_lines(record)
            reason = f"The row opens a quote that is not closed before the end of the file{lines}."
        elif not is_cleanly_quoted(record, self._dialect):
            return _reject_bad_quotes(record, row)
        elif is_last and len(fields) != len(self._names) and not record.endswith((b"\n", b"\r")):
            reason = _describe_cut(fields, len(self._names))
        reason = reason or find_fault(fields, self._expected_fields(fields), self._encoding)
        return build_reject(fields, self.order.names or self._names, row, reason) if reason else None

    def _expected_fields(self, fields: Sequence[str]) -> int:
        """Return the number of fields that this record should have."""
        return min(len(fields), len(self._names)) if self._fills else len(self._names)

    def skip_record(self, buffer: bytes, location: RecordLocation) -> tuple[RecordChunk, bytes]:
        """Reject a too large record that begins with ``buffer``. Return the chunk, and the bytes that were read after it."""
        beginning = buffer[:SHOWN]
        scanner = RecordScanner(self._dialect)
        offset, lines = location.offset, 0
        rest = b""
        while buffer:
            end = scanner.feed(buffer)
            if end is not None:
                offset, rest = offset + end, buffer[end:]
                lines += buffer[: max(0, end - 2)].count(b"\n")  # without the line feed that ends the record
                break
            offset += len(buffer)
            lines += buffer.count(b"\n")
            buffer = self._read(BLOCK_BYTES)
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
            f"The row is larger than {self._record_bytes} bytes and spans {lines} more lines. Most often a quote was"
            " opened and not closed; check the beginning of the row."
        )
        return Reject(position=row, reason=reason, record={"text": shown_text(beginning)})


def _describe_cut(fields: Sequence[str], columns: int) -> str:
    return (
        f"The row has {counted(len(fields), 'field')} but the header names {columns}, and the file ends in it without a line"
        " end: it may be cut off here."
    )


def _reject_bad_quotes(record: bytes, row: int) -> Reject:
    reason = (
        f"The row has text after a closing quote{describe_extra_lines(record)}. Write each quote within a quoted field"
        " twice, and close each field that begins with a quote."
    )
    text = escape_stray_bytes(record.decode("utf-8", "surrogateescape").rstrip("\r\n")).replace("\0", "\\x00")
    return Reject(position=row, reason=reason, record={"text": text})
