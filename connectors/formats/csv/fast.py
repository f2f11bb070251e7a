"""The fast path: polars, on blocks of which cheap facts prove that it reads what Python's csv module reads.

Split at the quotes. In a *clean* block the pieces with even numbers lie outside quotes, the odd ones inside, and two quotes
for one show as an empty piece outside. That reading is the csv module's own if the quotes are even in number, every
opening one stands at a field's start and every closing one before a comma, a line's end or the block's end: by induction
from the left, since outside quotes a comma or a line feed always ends a field. What lies outside then counts the true
commas and line ends, and polars can only differ in places that are counted or excluded here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from connectors.formats.csv.dialect import COMMA, Dialect

_BOM = b"\xef\xbb\xbf"


def end_of_last_record(buffer: bytes, dialect: Dialect = COMMA) -> int:
    """The offset after the last line feed that lies outside quotes, if the block's quotes are clean; 0 where there is none."""
    end = buffer.rfind(b"\n")
    if not dialect.quote:
        return end + 1
    quote = dialect.quote.encode()
    odd = buffer.count(quote, 0, end + 1) % 2 == 1
    while end >= 0 and odd:
        opening = buffer.rfind(quote, 0, end)
        before = buffer.rfind(b"\n", 0, opening)
        odd = (buffer.count(quote, before + 1, end) % 2 == 1) != odd
        end = before
    return end + 1


def read_fast(block: bytes, names: Sequence[str], dialect: Dialect = COMMA) -> pl.DataFrame | None:
    """The block's records as columns of text, or None where it is not proven that the csv module would read the same.

    ``block`` holds whole records and is not empty; every record has as many fields as ``names``, or the answer is None.
    """
    outside = _outside_quotes(block, dialect)
    if outside is None or not _plain_lines(outside) or block.startswith(_BOM) or b"\0" in block:
        return None
    if dialect.comment and (block.startswith(dialect.comment.encode()) or f"\n{dialect.comment}".encode() in block):
        return None
    if len(names) == 1 and (outside.startswith(b"\n") or b"\n\n" in outside):
        return None  # a blank line; with more columns it shows by the commas that it lacks
    rows = outside.count(b"\n") + (not outside.endswith(b"\n"))
    if outside.count(dialect.delimiter.encode()) != rows * (len(names) - 1) or not is_utf8(block):
        return None
    try:
        frame = pl.read_csv(
            block,
            has_header=False,
            separator=dialect.delimiter,
            quote_char=dialect.quote or None,
            infer_schema=False,
            schema=dict.fromkeys(names, pl.String),
            empty_string_is_null=False,
            extra_columns="raise",
            missing_columns="raise",
        )
    except pl.exceptions.PolarsError:  # a record with too many fields; the tolerant path says which
        return None
    return frame if frame.height == rows else None


def _outside_quotes(block: bytes, dialect: Dialect) -> bytes | None:
    """The block with every quoted stretch reduced to one quote; None where quotes are dirty or enclose a line's end."""
    quote = dialect.quote.encode()
    if not quote or quote not in block:
        return block
    pieces = block.split(quote)
    if len(pieces) % 2 == 0:
        return None
    outside = quote.join(pieces[::2])
    if _dirty(dialect).search(outside):
        return None
    # polars parses parts of a block side by side, and where it cuts them is not ours to prove: no line ends in quotes.
    inside = b"".join(pieces[1::2])
    return None if b"\n" in inside or b"\r" in inside else outside


@lru_cache(maxsize=64)
def _dirty(dialect: Dialect) -> re.Pattern[bytes]:
    """Each quoted stretch is reduced to one quote; one that has text where a field's border should be is dirty."""
    quote, delimiter = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    return re.compile(rb"%s(?:(?<=[^%s\n%s]%s)|[^%s\r\n%s])" % (quote, delimiter, quote, quote, delimiter, quote))


def _plain_lines(outside: bytes) -> bool:
    """No carriage return but before a line feed, and none of those on a blank line."""
    if b"\r" not in outside:
        return True
    return (
        outside.count(b"\r") == outside.count(b"\r\n") and not outside.startswith(b"\r\n") and b"\n\r\n" not in outside
    )


def is_utf8(block: bytes) -> bool:
    """Whether every byte is part of UTF-8 text."""
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True
