"""The tolerant path of CSV: Python's csv module over a buffer, with the byte offsets of every record."""

from __future__ import annotations

import csv
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from connectors.formats.csv.dialect import COMMA, Dialect
from connectors.formats.csv.scanner import RecordScanner, State
from connectors.utf8 import is_utf8
from ingestd.sdk import Reject, counted
from ingestd.sdk.formats.record_chunk import escape_stray_bytes

_ADVICE = "Save the file as UTF-8, or set encoding."

RawRecord: TypeAlias = tuple[list[str], int, int]
"""A record's fields as the csv module reads them (none for a blank line), and its start and end offsets."""


class _CsvLines:
    """A buffer's lines as text, with a count of the bytes that were yielded.

    Undecodable bytes become lone surrogates. Where a record can begin (``is_between``), a comment is yielded as a blank line,
    and a byte order mark is left out.
    """

    def __init__(self, buffer: bytes, *, final: bool, comment: str) -> None:
        self._comment = comment.encode()
        self.is_between = True
        self._lines = buffer.splitlines(keepends=True)  # as open(newline=""): \n, \r and \r\n, unchanged
        if self._lines and not final and not self._lines[-1].endswith(b"\n"):
            self._lines.pop()  # an incomplete line, or a \r before the missing \n
        self.yielded = 0
        self.exhausted = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.yielded += len(line)
            if self.is_between and self._comment and line.startswith(self._comment):
                yield "\n"
                continue
            if self.is_between and line.startswith(BOM_UTF8):
                line = line[len(BOM_UTF8) :]  # noqa: PLW2901 - another file was appended here
            self.is_between = False
            yield line.decode("utf-8", "surrogateescape")
        self.exhausted = True


def iter_records(buffer: bytes, *, final: bool, dialect: Dialect = COMMA) -> Iterator[RawRecord]:
    """Yield the whole records of a buffer that starts at a record. ``final``: nothing follows the buffer.

    A record that is cut by the end of the buffer is not yielded, unless ``final``.
    """
    if csv.field_size_limit() < sys.maxsize:
        csv.field_size_limit(sys.maxsize)  # the reader limits whole records, not single fields
    lines = _CsvLines(buffer, final=final, comment=dialect.comment)
    start = 0
    if dialect.quote:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
    else:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=None, quoting=csv.QUOTE_NONE)
    for fields in reader:
        if lines.exhausted and not final:
            return
        yield fields, start, lines.yielded
        start = lines.yielded
        lines.is_between = True


def is_unterminated(record: bytes, dialect: Dialect = COMMA) -> bool:
    """Return True if the last record of a file ends inside quotes."""
    scanner = RecordScanner(dialect)
    return scanner.feed(record) is None and scanner.state is State.QUOTED


def is_cleanly_quoted(record: bytes, dialect: Dialect = COMMA) -> bool:
    """Return True if a delimiter or the record's end follows each closing quote; a quote within a plain field is text."""
    return not dialect.quote or dialect.quote.encode() not in record or bool(_clean_record(dialect).fullmatch(record))


@lru_cache(maxsize=64)
def _clean_record(dialect: Dialect) -> re.Pattern[bytes]:
    quote, delimiter = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    quoted = rb"%s[^%s]*+(?:%s%s[^%s]*+)*+%s" % ((quote,) * 6)
    plain = rb"[^%s%s\r\n][^%s\r\n]*+" % (quote, delimiter, delimiter)
    return re.compile(rb"(?:%s|%s)?+(?:%s(?:%s|%s)?+)*+[\r\n]*+" % (quoted, plain, delimiter, quoted, plain))


def count_extra_lines(record: bytes) -> int:
    """Return the number of lines of a record after its first line."""
    return max(0, len(record.splitlines()) - 1)


def describe_extra_lines(record: bytes) -> str:
    """Return the end of a sentence with the number of further lines that a record spans; empty for one line."""
    lines = count_extra_lines(record)
    return f"; it spans {counted(lines, 'more line')}" if lines else ""


def find_fault(fields: Sequence[str], columns: int, encoding: str = "utf-8") -> str:
    """Return why a record is rejected, as a sentence; empty if it is valid. ``encoding``: the name of the file's encoding."""
    if len(fields) != columns:
        return f"The row has {counted(len(fields), 'field')} but the header names {columns}."
    text = "".join(fields)
    if "\0" in text:
        return "The row holds a NUL byte, which is not allowed in text."
    return "" if is_utf8(text) else f"The row holds bytes that are not {encoding.upper()}. {_ADVICE}"


def build_reject(fields: Sequence[str], names: Sequence[str], row: int, reason: str) -> Reject:
    """Return the reject of a record: its fields under the header's names, further fields under their number."""
    labels = [*names, *(f"field {number}" for number in range(len(names) + 1, len(fields) + 1))]
    record = {
        label: escape_stray_bytes(text).replace("\0", "\\x00") for label, text in zip(labels, fields, strict=False)
    }
    return Reject(position=row, reason=reason, record=record)
