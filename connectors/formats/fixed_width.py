"""Fixed width: lines with fields at fixed positions, read a block at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Literal, Self

from msgspec.structs import replace
from pydantic import Field, model_validator

from connectors.formats.frames import rows_to_frame
from connectors.formats.preamble import preamble_facts
from connectors.formats.text import DETECT, EncodingName, open_text
from connectors.formats.text.lines import decode_line, line_fault, shown_text
from connectors.option_types import ConnectorOptions
from ingestd.sdk import NOTICE, Reject, SourceBroken
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import (
    BLOCK_BYTES,
    RECORD_BYTES,
    RecordChunk,
    RecordLocation,
    row_positions,
)

_GAP = re.compile(r"\t| {2,}")


class FixedColumn(ConnectorOptions):
    """A field of a fixed-width file."""

    name: str = Field(min_length=1, description="The field's name.")
    start: int = Field(ge=1, description="The position of its first character, from 1.")
    width: int = Field(ge=1, description="The number of its characters.")


class FixedWidth(Format):
    """Lines with fields at fixed positions. No suffix implies this format, so it must be configured."""

    type: Literal["fixed_width"] = "fixed_width"
    columns: Annotated[list[FixedColumn], Field(min_length=1)] = Field(description="The fields of a line.")
    skip_rows: int = Field(default=0, ge=0, description="The number of lines above the first record that are skipped.")
    preamble: bool = Field(
        default=False,
        description="Whether skipped lines such as `Operator: J. Doe` are facts of the file; as for csv. It needs skip_rows.",
    )
    trim: bool = Field(default=True, description="Whether the spaces around a value are removed.")
    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("columns has a name twice")
        if self.preamble and not self.skip_rows:
            raise ValueError("preamble needs skip_rows, the number of lines above the first record")
        return self

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the records of a file, at least one chunk.

        Each line is a record; positions are line numbers from 1. Blank lines have a number but are no record. A line that ends
        before its last field begins is rejected.

        Raises:
            SourceBroken: the file is empty, a line is above the size limit, or the lines of the preamble are too many.
        """
        text = open_text(file, self.encoding)
        facts: Mapping[str, str] = {}
        buffer, location, final, is_empty = b"", RecordLocation(offset=text.encoding.mark), False, True
        unread = _TextAfterFields(max(column.start - 1 + column.width for column in self.columns))
        while not final:
            more = text.read(BLOCK_BYTES)
            final = not more
            buffer += more
            end = len(buffer) if final else buffer.rfind(b"\n") + 1
            if not end:
                if len(buffer) > RECORD_BYTES:
                    raise SourceBroken(f"{name}: line {location.row + 1} is larger than {RECORD_BYTES} bytes.")
                continue
            if self.preamble and is_empty:
                facts = self._preamble_facts(buffer[:end], name)
            chunk = self._read_block(buffer[:end], location, text.encoding.name, unread)
            is_empty, location, buffer = False, chunk.end, buffer[end:]
            notice = " ".join(filter(None, [text.facts.get(NOTICE), unread.notice()]))
            yield replace(chunk, facts={**facts, **text.facts, **({NOTICE: notice} if notice else {})})
        if is_empty:
            raise SourceBroken(f"{name} is empty: it has no lines.")

    def _preamble_facts(self, block: bytes, name: str) -> Mapping[str, str]:
        """Return the facts in the first lines of the file. Two spaces separate a name from a value."""
        rows = self.skip_rows
        lines = (line.decode("utf-8", "surrogateescape") for line in block.split(b"\n", rows)[:rows])
        return preamble_facts((_GAP.split(line.strip()) for line in lines), name)

    def _read_block(
        self, block: bytes, location: RecordLocation, encoding: str, unread: _TextAfterFields
    ) -> RecordChunk:
        cuts = [slice(column.start - 1, column.start - 1 + column.width) for column in self.columns]
        shortest = max(column.start for column in self.columns)
        lines = block.removesuffix(b"\n").split(b"\n")
        rows: list[list[str]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(lines, start=location.row + 1):
            line = decode_line(raw)
            if number <= self.skip_rows or not line.strip():
                continue
            if reason := _fault(line, number, encoding, shortest):
                rejects.append(Reject(position=number, reason=reason, record={"text": shown_text(line)}))
                continue
            unread.count(number, line)
            fields = [line[cut] for cut in cuts]
            rows.append([field.strip(" \t") for field in fields] if self.trim else fields)
            numbers.append(number)
        return RecordChunk(
            records=rows_to_frame(rows, [column.name for column in self.columns]),
            positions=row_positions(numbers),
            rejects=tuple(rejects),
            end=RecordLocation(offset=location.offset + len(block), row=location.row + len(lines)),
            header=True,
        )


@dataclass(slots=True)
class _TextAfterFields:
    """Counts the lines with text after the last field, which ends at character ``end``."""

    end: int
    found: int = 0
    first: int = 0

    def count(self, number: int, line: str) -> None:
        if line[self.end :].strip():
            self.found += 1
            self.first = self.first or number

    def notice(self) -> str:
        """Return a sentence; empty if no line has such text so far."""
        if not self.found:
            return ""
        lines = (
            f"Line {self.first} has" if self.found == 1 else f"{self.found} lines, the first of them {self.first}, have"
        )
        return f"{lines} text after character {self.end}, where the last field ends (columns). It is not read."


def _fault(line: str, number: int, encoding: str, shortest: int) -> str:
    if fault := line_fault(line, f"Line {number}", encoding):
        return fault
    if len(line) < shortest:
        return f"Line {number} has {len(line)} characters, but its last field begins at character {shortest}."
    return ""
