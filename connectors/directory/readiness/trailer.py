"""The rule `trailer`: the last line of a file states the number of its records."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Annotated, BinaryIO, Literal, cast

from pydantic import AfterValidator, Field

from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule
from connectors.files.file_batches import FileHead
from connectors.formats.compression import packed_suffix
from ingestd.sdk import SourceBroken

_TAIL_BYTES = 4096


def _check_pattern(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from error
    if groups != 1:
        raise ValueError("it needs one pair of brackets around the number, as in '# rows: (\\d+)'")
    return pattern


class Trailer(ReadinessRule):
    """The file ends with a trailer: a line that states the number of records and is not itself a record."""

    type: Literal["trailer"] = "trailer"
    pattern: Annotated[str, AfterValidator(_check_pattern)] = Field(
        default=r"#\s*rows:\s*(\d+)",
        description=(
            "A regular expression for the whole last line, with brackets around the number. It works for CSV, NDJSON and"
            " fixed width that are not packed, in an encoding that writes ASCII characters as ASCII bytes."
        ),
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait until the file ends with a trailer. The file is invalid if the trailer states a wrong number of records."""
        if packed_suffix(view.name):
            return InvalidFile(sentence=f"{view.name}: the rule trailer can't read a packed file. Drop it unpacked.")
        start, wanted = view.cached("trailer", lambda: self._read_trailer(view))
        if wanted is None:
            return NotReady(
                sentence=f"its last line does not state the number of its records (trailer: {self.pattern})"
            )
        try:
            found = view.cached("records", lambda: _count_records(view, start))
        except SourceBroken:
            return None  # the reading reports why
        if found != wanted:
            return InvalidFile(
                sentence=(
                    f"{view.name}: its last line says {wanted} records, but the file holds {found}. Drop the"
                    " complete file again."
                )
            )
        return None

    def _read_trailer(self, view: FileView) -> tuple[int, int | None]:
        with view.open_file() as file:
            start, line = read_last_line(file)
        found = _compile(self.pattern).fullmatch(line)
        return start, int(found[1]) if found and found[1].isdecimal() else None

    def find_start(self, file: BinaryIO) -> int | None:
        """Return the offset of the trailer in bytes; None if the file has no trailer. Afterwards, the file is at offset 0."""
        start, line = read_last_line(file)
        file.seek(0)
        return start if _compile(self.pattern).fullmatch(line) else None


def read_last_line(file: BinaryIO) -> tuple[int, str]:
    """Return the offset and the text of the last line that is not blank. Of a very long line, only the end is returned."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES).rstrip()
    at = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
    return max(0, size - _TAIL_BYTES) + at, tail[at:].decode("utf-8", "replace").strip()


def _count_records(view: FileView, end: int) -> int:
    with view.open_file() as file:
        chunks = view.format.read(cast("BinaryIO", FileHead(file, end)), view.name)
        return sum(chunk.records.height + len(chunk.rejects) for chunk in chunks)


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
