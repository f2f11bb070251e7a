"""The fixed width reader: cuts lines into fields at fixed positions, a block at a time."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from connectors.formats.frames import rows_to_frame
from connectors.formats.preamble import preamble_facts
from connectors.formats.text import DETECT, open_text
from ingestd.sdk import Reject, SourceBroken
from ingestd.sdk.formats.record_chunk import (
    BLOCK_BYTES,
    RECORD_BYTES,
    RecordChunk,
    RecordLocation,
    escape_stray_bytes,
    row_positions,
)

_SHOWN = 1000
_GAP = re.compile(r"\t| {2,}")


class Column(NamedTuple):
    """A field: its name, the position of its first character (from 1) and the number of its characters."""

    name: str
    start: int
    width: int


def read_fixed_width(
    file: BinaryIO,
    name: str,
    columns: Sequence[Column],
    *,
    skip_rows: int = 0,
    preamble: bool = False,
    trim: bool = True,
    encoding: str = DETECT,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
) -> Iterator[RecordChunk]:
    """Yield the records of a file, at least one chunk.

    Each line is a record; positions are line numbers from 1. Blank lines have a number but are no record. A line that ends
    before its last field begins is rejected. ``trim``: remove the spaces around values. ``preamble``: the skipped
    lines are facts.

    Raises:
        SourceBroken: the file is empty, a line is above the size limit, or the lines of the preamble are too many.
    """
    text = open_text(file, encoding)
    reader = _FixedWidthLines(columns, text.encoding.name, trim=trim)
    buffer, location, final, is_empty = b"", RecordLocation(offset=text.encoding.mark), False, True
    while not final:
        more = text.read(block_bytes)
        final = not more
        buffer += more
        end = len(buffer) if final else buffer.rfind(b"\n") + 1
        if not end:
            if len(buffer) > record_bytes:
                raise SourceBroken(f"{name}: line {location.row + 1} is larger than {record_bytes} bytes.")
            continue
        if preamble and is_empty:
            reader.read_preamble(buffer[:end], skip_rows, name)
        chunk = reader.read_block(buffer[:end], location, skip_rows)
        is_empty, location, buffer = False, chunk.end, buffer[end:]
        yield replace(chunk, facts=reader.facts | text.facts)
    if is_empty:
        raise SourceBroken(f"{name} is empty: it has no lines.")


class _FixedWidthLines:
    def __init__(self, columns: Sequence[Column], encoding: str, *, trim: bool) -> None:
        self._names = [column.name for column in columns]
        self._cuts = [slice(column.start - 1, column.start - 1 + column.width) for column in columns]
        self._shortest = max(column.start for column in columns)
        self._encoding = encoding
        self.facts: dict[str, str] = {}
        """The facts in the first lines."""
        self._trim = trim

    def read_preamble(self, block: bytes, rows: int, name: str) -> None:
        """Read the facts in the first lines of the file. Two spaces separate a name from a value."""
        lines = (line.decode("utf-8", "surrogateescape") for line in block.split(b"\n", rows)[:rows])
        self.facts |= preamble_facts((_GAP.split(line.strip()) for line in lines), name)

    def read_block(self, block: bytes, location: RecordLocation, skip_rows: int) -> RecordChunk:
        lines = block.removesuffix(b"\n").split(b"\n")
        rows: list[list[str]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(lines, start=location.row + 1):
            line = raw.removesuffix(b"\r").removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")
            if number <= skip_rows or not line.strip():
                continue
            if reason := self._fault(line, number):
                rejects.append(
                    Reject(position=number, reason=reason, record={"text": escape_stray_bytes(line[:_SHOWN])})
                )
                continue
            fields = [line[cut] for cut in self._cuts]
            rows.append([field.strip(" \t") for field in fields] if self._trim else fields)
            numbers.append(number)
        return RecordChunk(
            records=rows_to_frame(rows, self._names),
            positions=row_positions(numbers),
            rejects=tuple(rejects),
            end=RecordLocation(offset=location.offset + len(block), row=location.row + len(lines)),
            header=True,
        )

    def _fault(self, line: str, number: int) -> str:
        if "\0" in line:
            return f"Line {number} holds a NUL byte, which is not allowed in text."
        if not line.isascii() and any("\udc00" <= letter <= "\udfff" for letter in line):
            return f"Line {number} holds bytes that are not {self._encoding.upper()}. Save the file as UTF-8, or set encoding."
        if len(line) < self._shortest:
            return f"Line {number} has {len(line)} characters, but its last field begins at character {self._shortest}."
        return ""
