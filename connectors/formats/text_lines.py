"""Text lines: a pattern with named groups reads each line, or each record of several lines.

The patterns are regular expressions of polars (Rust), which have no look-around and no back-references. For every pattern, the
time is linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, BinaryIO, Literal

import msgspec
import polars as pl
from msgspec.structs import replace
from pydantic import Field

from connectors.formats.text import DETECT, EncodingName, TextFile, open_text
from connectors.formats.text.lines import SHOWN, decode_line, line_fault, shown_text
from connectors.option_types import checked_by
from ingestd.sdk import NOTICE, Reject, SourceBroken
from ingestd.sdk.formats import Format
from ingestd.sdk.formats.record_chunk import (
    BLOCK_BYTES,
    RECORD_BYTES,
    RecordChunk,
    RecordLocation,
    row_positions,
)

_TAIL_BYTES = 2**16
_WHOLE = "1"
"""The name that polars gives to the first group, which has no name."""


def _groups(pattern: str) -> list[str]:
    """Return the names of the groups of a pattern.

    Raises:
        ValueError: ``pattern`` is no regular expression, or is too large.
    """
    try:
        found = pl.Series([], dtype=pl.String).str.extract_groups(pattern)
    except pl.exceptions.ComputeError as error:
        lines = str(error).splitlines()
        reason = lines[-1].removeprefix("error: ").removeprefix("regex error: ").rstrip(".")
        raise ValueError(f"it is no regular expression that can be used here: {reason}") from None
    return [name for name in found.struct.fields if not name.isdigit()]


def _check_names(pattern: str) -> None:
    if not _groups(pattern):
        raise ValueError("it has no named group, such as (?P<time>[^ ]+); each named group becomes a field")
    _groups(_whole(pattern))


def _whole(pattern: str) -> str:
    """Return a pattern that matches only a whole text. Its first group has a value if the pattern matched."""
    return rf"\A((?s:{pattern}))\z"


class TextLines(Format):
    """Lines of text; the named groups of a pattern are the fields. No suffix implies this format, so it must be configured."""

    type: Literal["text"] = "text"
    pattern: Annotated[str, checked_by(_check_names)] = Field(
        description=(
            "A regular expression with named groups, such as (?P<time>[^ ]+) (?P<value>.*), which are the fields. It matches a"
            " whole line; .* matches text that is not needed. It has the syntax of Rust: without look-around and back-references."
        ),
    )
    multiline: Annotated[str, checked_by(_groups)] | None = Field(
        default=None,
        description=(
            "A regular expression for the first line of a record. The lines below it until the next such line belong to the"
            r" record, and the pattern matches all of them; its dot also matches line ends. ^\S: a line that begins with white"
            " space continues the record. Default: each line is a record."
        ),
        examples=[r"^\S", r"^\d{4}-"],
    )
    unmatched: Literal["reject", "ignore"] = Field(
        default="reject",
        description=(
            "A line that the pattern does not match: it is rejected, or it is ignored and a notice states the"
            " number of ignored lines."
        ),
    )
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the records of a file, at least one chunk. A position is the number of a record's first line, from 1.

        Blank lines are no records. A group that takes no part in the match is an absent field.

        Raises:
            SourceBroken: the file is empty.
        """
        text = open_text(file, self.encoding)
        records = TextRecords(self, text.encoding.name)
        location, buffer, final, ignored = RecordLocation(offset=text.encoding.mark), b"", False, 0
        while not final:
            more = text.read(BLOCK_BYTES)
            final = not more
            buffer += more
            end = len(buffer) if final else records.complete_length(buffer)
            if end:
                chunk, count = records.read(buffer[:end], location)
                ignored += count
                buffer = buffer[end:]
            elif len(buffer) > RECORD_BYTES:
                chunk, buffer = _skip_record(text, buffer, location, records)
            else:
                continue
            location = chunk.end
            notices = [notice for notice in (text.facts.get(NOTICE), ignored_notice(ignored)) if notice]
            yield replace(chunk, facts={**text.facts, **({NOTICE: " ".join(notices)} if notices else {})})
        if not location.row:
            raise SourceBroken(f"{name} is empty: it has no lines.")


class TextRecords:
    """Reads records from UTF-8 text that begins at the start of a line. ``encoding``: the name of the file's encoding."""

    def __init__(self, settings: TextLines, encoding: str) -> None:
        self._pattern = _whole(settings.pattern)
        self._names = _groups(settings.pattern)
        self._first = settings.multiline
        self._ignores = settings.unmatched == "ignore"
        self._encoding = encoding

    def complete_length(self, text: bytes) -> int:
        """Return the number of bytes in whole records. A record of several lines is whole when the next record begins."""
        if self._first is None:
            return text.rfind(b"\n") + 1
        # Only the last lines are searched first. Most records are short, and `read` searches each line again.
        tail = text.find(b"\n", len(text) - _TAIL_BYTES) + 1 if len(text) > _TAIL_BYTES else 0
        for begin in (tail, 0) if tail else (0,):
            if starts := self._starts(text[begin:], self._first):
                return begin + starts[-1]
        return 0

    def first_length(self, text: bytes) -> int:
        """Return the number of bytes of the first record; 0 if this record is not whole."""
        if self._first is None:
            return text.find(b"\n") + 1
        return next(iter(self._starts(text, self._first)), 0)

    def _starts(self, text: bytes, first: str) -> list[int]:
        """Return the offsets above 0 at which records of several lines begin. Only lines with a line end are searched."""
        lines = text[: text.rfind(b"\n") + 1].split(b"\n")[:-1]
        ends = accumulate(len(line) + 1 for line in lines)
        begins = self._begins([decode_line(line) for line in lines], first)
        starts = (end - len(line) - 1 for line, end, is_first in zip(lines, ends, begins, strict=True) if is_first)
        return [start for start in starts if start]

    def _begins(self, lines: Sequence[str], first: str) -> list[bool]:
        """Return for each line whether it is the first line of a record."""
        texts = [line.encode("utf-8", "replace").decode() for line in lines]
        return pl.Series(texts, dtype=pl.String).str.contains(first).to_list()

    def read(self, block: bytes, location: RecordLocation) -> tuple[RecordChunk, int]:
        """Return the records of a block of whole lines, and the number of ignored lines. The block begins at ``location``."""
        lines = [decode_line(line) for line in block.removesuffix(b"\n").split(b"\n")]
        rejects: list[Reject] = []
        pieces: list[_TextRecord] = []
        for piece in self._pieces(lines, location.row + 1):
            if fault := line_fault(piece.text, piece.subject, self._encoding):
                rejects.append(piece.reject(fault))
            else:
                pieces.append(piece)
        found = (
            pl.Series([piece.text for piece in pieces], dtype=pl.String)
            .str.extract_groups(self._pattern)
            .struct.unnest()
        )
        is_match = found[_WHOLE].is_not_null()
        unmatched = [piece for piece, matches in zip(pieces, is_match, strict=True) if not matches]
        if not self._ignores:
            rejects += [
                piece.reject(
                    f"{piece.subject} does not match the pattern as a whole. Change pattern, or set unmatched: ignore."
                )
                for piece in unmatched
            ]
        chunk = RecordChunk(
            records=found.filter(is_match).select(self._names),
            positions=row_positions([piece.number for piece in pieces]).filter(is_match),
            rejects=tuple(sorted(rejects, key=lambda reject: int(reject.position))),
            end=RecordLocation(offset=location.offset + len(block), row=location.row + len(lines)),
            header=True,
        )
        return chunk, sum(piece.lines for piece in unmatched) if self._ignores else 0

    def _pieces(self, lines: Sequence[str], number: int) -> Iterator[_TextRecord]:
        """Yield the records without blank lines at their ends. ``number``: the number of the first line."""
        starts: Sequence[int] = range(len(lines))
        if self._first is not None:
            starts = [at for at, is_first in enumerate(self._begins(lines, self._first)) if is_first or not at]
        for start, end in pairwise([*starts, len(lines)]):
            own = list(lines[start:end])
            while own and not own[-1].strip():
                own.pop()
            if own:
                yield _TextRecord(number=number + start, lines=len(own), text="\n".join(own))


class _TextRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a record, the number of its first line, and how many lines it has."""

    number: int
    lines: int
    text: str

    @property
    def subject(self) -> str:
        return (
            f"Line {self.number}"
            if self.lines == 1
            else f"The record in lines {self.number} to {self.number + self.lines - 1}"
        )

    def reject(self, reason: str) -> Reject:
        return Reject(position=self.number, reason=reason, record={"text": shown_text(self.text)})


def ignored_notice(lines: int) -> str:
    """Return the sentence about ignored lines; empty if there are none."""
    return f"Ignored lines that pattern does not match (unmatched): {lines}." if lines else ""


def _skip_record(
    file: TextFile, buffer: bytes, location: RecordLocation, records: TextRecords
) -> tuple[RecordChunk, bytes]:
    """Reject a record above the size limit, skip to its end, and return the bytes that were read after it."""
    shown = shown_text(decode_line(buffer[:SHOWN]))
    offset, row, more = location.offset, location.row, buffer
    while not (end := records.first_length(buffer)) and more:
        # The line feed before the last line stays in the buffer: only a line after a line feed can begin the next record.
        last = buffer.rfind(b"\n")
        count = last if last >= 0 and len(buffer) - last <= RECORD_BYTES else len(buffer)
        offset, row = offset + count, row + buffer.count(b"\n", 0, count)
        more = file.read(BLOCK_BYTES)
        buffer = buffer[count:] + more
    if not end:  # the file has ended, and its last line may begin a record
        end = min(records.first_length(buffer + b"\n") or len(buffer), len(buffer))
    row += buffer.count(b"\n", 0, end) + (not buffer[:end].endswith(b"\n"))
    number = location.row + 1
    reason = f"Line {number} begins a record that is larger than {RECORD_BYTES} bytes, the limit for a record."
    chunk = RecordChunk(
        records=pl.DataFrame(),
        positions=row_positions([]),
        rejects=(Reject(position=number, reason=reason, record={"text": shown}),),
        end=RecordLocation(offset=offset + end, row=row),
    )
    return chunk, buffer[end:]
