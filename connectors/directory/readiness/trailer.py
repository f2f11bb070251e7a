"""The last line of a file says how many records it holds."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Annotated, BinaryIO, Literal, cast

from pydantic import AfterValidator, Field

from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule
from connectors.files.file_head import FileHead
from connectors.formats.compression import packed_suffix
from ingestd.sdk import SourceBroken

_TAIL_BYTES = 4096


def _counts(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from error
    if groups != 1:
        raise ValueError("it needs one pair of brackets around the number, as in '# rows: (\\d+)'")
    return pattern


class Trailer(ReadinessRule):
    """The file ends with a line that names the number of its records. That line is no record itself."""

    type: Literal["trailer"] = "trailer"
    pattern: Annotated[str, AfterValidator(_counts)] = Field(
        default=r"#\s*rows:\s*(\d+)",
        description=(
            "A regular expression that fits the whole last line, with brackets around the number. Of CSV, NDJSON and fixed"
            " width, not packed, in an encoding that writes ASCII as ASCII."
        ),
    )

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """A file without the line has not been written to its end; one with another number must not be read."""
        if packed_suffix(look.name):
            return Invalid(sentence=f"{look.name}: the rule trailer can't look into a packed file. Drop it unpacked.")
        start, wanted = look.cached("trailer", lambda: self._last_line(look))
        if wanted is None:
            return NotReady(sentence=f"its last line does not tell the number of its records (trailer: {self.pattern})")
        try:
            found = look.cached("records", lambda: _records(look, start))
        except SourceBroken:
            return None  # it can't be read; reading says why
        if found != wanted:
            return Invalid(
                sentence=f"{look.name}: its last line says {wanted} records, it holds {found}. Drop it again, complete."
            )
        return None

    def _last_line(self, look: FileView) -> tuple[int, int | None]:
        with look.path.open("rb") as file:
            start, line = read_last_line(cast("BinaryIO", file))
        found = _compiled(self.pattern).fullmatch(line)
        return start, int(found[1]) if found and found[1].isdecimal() else None

    def start(self, file: BinaryIO) -> int | None:
        """Where the line begins, in bytes; None where the file does not end with one. The file is back at its start."""
        start, line = read_last_line(file)
        file.seek(0)
        return start if _compiled(self.pattern).fullmatch(line) else None


def read_last_line(file: BinaryIO) -> tuple[int, str]:
    """The last line that is not blank: where it begins, and what it says; of a very long one, its end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES).rstrip()
    at = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
    return max(0, size - _TAIL_BYTES) + at, tail[at:].decode("utf-8", "replace").strip()


def _records(look: FileView, end: int) -> int:
    with look.path.open("rb") as file:
        chunks = look.file_format.read(cast("BinaryIO", FileHead(cast("BinaryIO", file), end)), look.name)
        return sum(chunk.records.height + len(chunk.rejects) for chunk in chunks)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
