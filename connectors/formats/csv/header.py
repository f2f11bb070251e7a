"""The header row of a CSV file: which columns there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import BinaryIO

from connectors.formats.csv.tolerant import is_unterminated, records_of
from connectors.formats.stretch import Place, showable
from ingestd.sdk import SourceBroken

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Column names, where the first record starts, and the bytes that were read beyond that."""

    names: tuple[str, ...]
    end: Place
    rest: bytes


_FIRST_BYTES = 64 * 2**10


def read_header(file: BinaryIO, name: str, *, block_bytes: int, record_bytes: int) -> Header:
    """Read the header row from the file's start; ``name`` is the file's, for the sentence of an error.

    Raises:
        SourceBroken: the file is empty, or its header can't name columns.
    """
    buffer, final = b"", False
    while not final and len(buffer) <= record_bytes + len(BOM):
        more = file.read(min(max(_FIRST_BYTES, len(buffer)), block_bytes))
        final = not more
        buffer += more
        if len(buffer) < len(BOM) and not final:
            continue
        start = len(BOM) if buffer.startswith(BOM) else 0
        body = buffer[start:]
        for row, (fields, first, end) in enumerate(records_of(body, final=final), start=1):
            if not fields:
                continue  # blank lines above the header are skipped, as everywhere
            if final and is_unterminated(body[first:]):
                raise SourceBroken(f"{name}: the header row opens a quote that is never closed.")
            return Header(
                names=_checked(fields, name),
                end=Place(offset=start + end, row=row),
                rest=body[end:],
            )
    if final:
        raise SourceBroken(f"{name} is empty: it has not even a header row.")
    raise SourceBroken(f"{name}: no header row within the first {record_bytes} bytes. Is this a CSV file?")


def _checked(names: list[str], file: str) -> tuple[str, ...]:
    """The names, if they can name columns: UTF-8, not empty, no two alike."""
    readable = [showable(name) for name in names]
    if readable != names or any("\0" in name for name in names):
        raise SourceBroken(f"{file}: the header row is not UTF-8 text. Save the file as CSV UTF-8.")
    nameless = [str(number) for number, name in enumerate(names, start=1) if not name]
    if nameless:
        raise SourceBroken(
            f"{file}: the header gives no name to column {', '.join(nameless)} of {len(names)}. Name it."
        )
    twice = [f"{name!r}" for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceBroken(f"{file}: the header has more than one column {', '.join(twice)}. Give each its own name.")
    return tuple(names)
