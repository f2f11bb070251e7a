"""The fast path of CSV: polars reads a block if the result is provably the same as that of Python's csv module.

A block is split at its quotes. The block is *clean* if it meets three conditions. The number of quotes is even. Every opening
quote is at the start of a field. Every closing quote is before a comma, a line end or the end of the block. Then the csv module
reads the pieces with even numbers outside quotes, and the pieces with odd numbers inside. An escaped quote is an empty piece
outside. The proof is by induction from the left: outside quotes, a comma or a line feed always ends a field. So the pieces
outside contain exactly the real commas and line ends. `read_fast` excludes all other cases in which polars could differ.

If a block has no escaped quote, a regular expression proves that it is clean, and the commas need not be counted. Every
byte is text of a field, a quote, a line end or a real comma. So the number of bytes of text that polars returns gives the
number of commas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from connectors.formats.csv.dialect import COMMA, Dialect
from connectors.utf8 import is_utf8

_BOM = b"\xef\xbb\xbf"


def end_of_last_record(buffer: bytes, dialect: Dialect = COMMA) -> int:
    """Return the offset after the last line feed outside quotes, if the block is clean; 0 if there is no such line feed."""
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


def read_fast(
    block: bytes, names: Sequence[str], dialect: Dialect = COMMA, *, lines: int | None = None
) -> pl.DataFrame | None:
    """Return the block's records as columns of text; None if the csv module could read the block differently.

    ``block`` holds whole records and is not empty; ``lines``: the number of its lines, if known. The result is None, too, if a
    record has another number of fields than ``names``.
    """
    is_plain = _is_plainly_quoted(block, dialect)
    outside = block if is_plain else _outside_quotes(block, dialect)
    if outside is None or not _has_plain_line_ends(outside) or _BOM in block or b"\0" in block:
        return None
    if dialect.comment and (block.startswith(dialect.comment.encode()) or f"\n{dialect.comment}".encode() in block):
        return None
    if len(names) == 1 and (outside.startswith(b"\n") or b"\n\n" in outside):
        return None  # a blank line; with more columns, the count of commas shows it
    rows = count_lines(block, 0, len(block)) if lines is None else lines  # no line ends inside quotes
    delimiters = rows * (len(names) - 1)
    is_counted = is_plain or outside.count(dialect.delimiter.encode()) == delimiters
    if not (is_counted and is_utf8(block)):
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
    except pl.exceptions.PolarsError:  # a record with too many fields; the tolerant path reports it
        return None
    is_whole = not is_plain or _text_bytes(frame) == _unquoted_bytes(block, dialect) - delimiters
    return frame if frame.height == rows and is_whole else None


def count_lines(block: bytes, start: int, end: int) -> int:
    """Return the number of lines between two offsets. The last line may have no line feed."""
    return block.count(b"\n", start, end) + (block[end - 1 : end] != b"\n")


def _is_plainly_quoted(block: bytes, dialect: Dialect) -> bool:
    """Return True if the block is clean, has no escaped quote, and no line end inside quotes."""
    quote = dialect.quote.encode()
    return not quote or quote not in block or _plain_quotes(dialect).fullmatch(block) is not None


@lru_cache(maxsize=64)
def _plain_quotes(dialect: Dialect) -> re.Pattern[bytes]:
    """Return the pattern of a plainly quoted block. A match never tries a byte twice."""
    quote, delimiter = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    field = rb"(?<![^%s\n])%s[^%s\r\n]*+%s(?![^%s\r\n])" % (delimiter, quote, quote, quote, delimiter)
    return re.compile(rb"[^%s]*+(?:%s[^%s]*+)*+" % (quote, field, quote))


def _text_bytes(frame: pl.DataFrame) -> int:
    """Return the number of bytes of all values."""
    return sum(frame.select(pl.all().str.len_bytes().cast(pl.Int64).sum()).row(0))


def _unquoted_bytes(block: bytes, dialect: Dialect) -> int:
    """Return the number of bytes of a plainly quoted block, not counting its quotes and line ends."""
    quotes = block.count(dialect.quote.encode()) if dialect.quote else 0
    returns = block.count(b"\r") if b"\r" in block else 0
    return len(block) - quotes - returns - block.count(b"\n")


def _outside_quotes(block: bytes, dialect: Dialect) -> bytes | None:
    """Return the block with each quoted part reduced to one quote; None if quotes are misplaced or enclose a line end."""
    quote = dialect.quote.encode()
    if not quote or quote not in block:
        return block
    pieces = block.split(quote)
    if len(pieces) % 2 == 0:
        return None
    outside = quote.join(pieces[::2])
    if _misplaced_quote(dialect).search(outside):
        return None
    # polars parses parts of a block in parallel and may cut at any line end, so no line end is allowed inside quotes.
    inside = b"".join(pieces[1::2])
    return None if b"\n" in inside or b"\r" in inside else outside


@lru_cache(maxsize=64)
def _misplaced_quote(dialect: Dialect) -> re.Pattern[bytes]:
    """Return the pattern of a quoted part that has text directly before or after it, where a field must begin or end."""
    quote, delimiter = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    return re.compile(rb"%s(?:(?<=[^%s\n%s]%s)|[^%s\r\n%s])" % (quote, delimiter, quote, quote, delimiter, quote))


def _has_plain_line_ends(outside: bytes) -> bool:
    """Return True if every carriage return is before a line feed, and no line is blank."""
    if b"\r" not in outside:
        return True
    return (
        outside.count(b"\r") == outside.count(b"\r\n") and not outside.startswith(b"\r\n") and b"\n\r\n" not in outside
    )
