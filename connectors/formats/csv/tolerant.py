"""The tolerant path: Python's csv module over a buffer, with the byte offsets of every record."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from connectors.formats.csv.dialect import COMMA, Dialect
from connectors.formats.csv.scanner import RecordScanner, State
from connectors.formats.record_chunk import escape_stray_bytes
from ingestd.sdk import Reject

_ADVICE = "Save the file as UTF-8, or say in which encoding it is."

RawRecord: TypeAlias = tuple[list[str], int, int]
"""A record's fields as the csv module reads them (none: a blank line), and the offsets at which it starts and ends."""


class _CsvLines:
    """A buffer's lines as text, counting what was handed out. Undecodable bytes become lone surrogates for now.

    A comment is handed out as a blank line. It can only stand where a record begins, which ``between`` says.
    """

    def __init__(self, buffer: bytes, *, final: bool, comment: str) -> None:
        self._comment = comment.encode()
        self.between = True
        self._lines = buffer.splitlines(keepends=True)  # as open(newline=""): \n, \r and \r\n, kept as they are
        if self._lines and not final and not self._lines[-1].endswith(b"\n"):
            self._lines.pop()  # half a line, or a \r whose \n is still to come
        self.handed_out = 0
        self.exhausted = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.handed_out += len(line)
            if self.between and self._comment and line.startswith(self._comment):
                yield "\n"
                continue
            self.between = False
            yield line.decode("utf-8", "surrogateescape")
        self.exhausted = True


def iter_records(buffer: bytes, *, final: bool, dialect: Dialect = COMMA) -> Iterator[RawRecord]:
    """The whole records of a buffer that starts at a record; ``final`` says that nothing comes after it.

    A record that the buffer's end cuts is not among them, unless ``final``.
    """
    if csv.field_size_limit() < sys.maxsize:
        csv.field_size_limit(sys.maxsize)  # what is too large is decided by the size of the record, not of one field
    lines = _CsvLines(buffer, final=final, comment=dialect.comment)
    start = 0
    if dialect.quote:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
    else:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=None, quoting=csv.QUOTE_NONE)
    for fields in reader:
        if lines.exhausted and not final:
            return
        yield fields, start, lines.handed_out
        start = lines.handed_out
        lines.between = True


def is_unterminated(record: bytes, dialect: Dialect = COMMA) -> bool:
    """Whether the last record of a file ends inside quotes."""
    scanner = RecordScanner(dialect)
    return scanner.feed(record) is None and scanner.state is State.QUOTED


def is_cleanly_quoted(record: bytes, dialect: Dialect = COMMA) -> bool:
    """Whether nothing but a delimiter or the record's end follows each closing quote. A quote within a plain field is text."""
    return not dialect.quote or dialect.quote.encode() not in record or bool(_clean(dialect).fullmatch(record))


@lru_cache(maxsize=64)
def _clean(dialect: Dialect) -> re.Pattern[bytes]:
    quote, delimiter = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    quoted = rb"%s[^%s]*+(?:%s%s[^%s]*+)*+%s" % ((quote,) * 6)
    plain = rb"[^%s%s\r\n][^%s\r\n]*+" % (quote, delimiter, delimiter)
    return re.compile(rb"(?:%s|%s)?+(?:%s(?:%s|%s)?+)*+[\r\n]*+" % (quoted, plain, delimiter, quoted, plain))


def count_extra_lines(record: bytes) -> int:
    """How many lines a record takes in beyond its first."""
    return max(0, len(record.splitlines()) - 1)


def describe_extra_lines(record: bytes) -> str:
    """That a record takes in lines which may be records of their own, as the end of a sentence; empty where it does not."""
    lines = count_extra_lines(record)
    return f"; it takes in {lines} more {'line' if lines == 1 else 'lines'}" if lines else ""


def find_fault(fields: Sequence[str], columns: int, row: int, encoding: str = "utf-8") -> str:
    """Why a record can't be taken, as a sentence; empty where it can. ``encoding`` names that of the file."""
    if len(fields) != columns:
        return f"Row {row} has {_count(len(fields))} where the header names {columns}."
    text = "".join(fields)
    if "\0" in text:
        return f"Row {row} holds a NUL byte, which no text file should."
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return f"Row {row} holds bytes that are not {encoding.upper()}. {_ADVICE}"
    return ""


def build_reject(fields: Sequence[str], names: Sequence[str], row: int, reason: str) -> Reject:
    """The parked form of a record: its fields under the header's names, further ones under their number."""
    labels = [*names, *(f"field {number}" for number in range(len(names) + 1, len(fields) + 1))]
    record = {
        label: escape_stray_bytes(text).replace("\0", "\\x00") for label, text in zip(labels, fields, strict=False)
    }
    return Reject(position=row, reason=reason, record=record)


def _count(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"
