"""A block of whole NDJSON lines as records: fast where all lines are flat objects, line by line elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import polars as pl

from connectors.formats.ndjson.exact import LineUnreadable, Record, record_of
from connectors.formats.ndjson.fast import TooManyCells, may_hold_minus_zero, read_flat
from connectors.formats.stretch import Place, Stretch, showable
from ingestd.sdk import Reject

CELLS = 4_000_000
"""Records times names that a frame may have: objects that share no names would otherwise square the memory."""

_BLANK = b" \t\r\n"
_SHOWN_BYTES = 1000


def read_block(block: bytes, place: Place, record_bytes: int, cells: int) -> Iterator[Stretch]:
    """The records of a block that starts at ``place``: one stretch, or more where their names have too little in common."""
    try:
        yield _stretch(block, place, record_bytes, cells)
    except TooManyCells:
        middle = block.find(b"\n", len(block) // 2, len(block) - 1) + 1 or block.rfind(b"\n", 0, len(block) // 2) + 1
        if not middle:  # one line: it has as many fields as it has
            yield _stretch(block, place, record_bytes, len(block))
            return
        for stretch in read_block(block[:middle], place, record_bytes, cells):
            place = stretch.end
            yield stretch
        yield from read_block(block[middle:], place, record_bytes, cells)


def _stretch(block: bytes, place: Place, record_bytes: int, cells: int) -> Stretch:
    lines = block.removesuffix(b"\n").split(b"\n")
    end = Place(offset=place.offset + len(block), row=place.row + len(lines))
    numbers: Sequence[int] = range(place.row + 1, end.row + 1)
    if not all(lines):
        kept = [(number, line) for number, line in zip(numbers, lines, strict=True) if line]
        numbers, lines = [number for number, _ in kept], [line for _, line in kept]
    rejects: list[Reject] = []
    records = None
    if lines and len(block) <= record_bytes and not may_hold_minus_zero(block):
        records = read_flat(lines, cells)
    if records is None:
        records, numbers, rejects = _line_by_line(numbers, lines, record_bytes, cells)
    return Stretch(
        records=records,
        positions=pl.Series("position", numbers, dtype=pl.Int64),
        rejects=tuple(rejects),
        end=end,
    )


def _line_by_line(
    numbers: Sequence[int], lines: Sequence[bytes], record_bytes: int, cells: int
) -> tuple[pl.DataFrame, list[int], list[Reject]]:
    rows: list[Record] = []
    places: list[int] = []
    rejects: list[Reject] = []
    for number, line in zip(numbers, lines, strict=True):
        if not line.strip(_BLANK):
            continue
        fault = ""
        if len(line) > record_bytes:
            fault = f"is larger than {record_bytes} bytes, more than one record may have"
        else:
            try:
                rows.append(record_of(line))
                places.append(number)
            except LineUnreadable as error:
                fault = str(error)
        if fault:
            text = showable(line[:_SHOWN_BYTES].decode("utf-8", "surrogateescape"))
            rejects.append(Reject(position=number, reason=f"Line {number} {fault}.", record={"text": text}))
    names = dict.fromkeys(chain.from_iterable(rows))
    if len(names) * len(rows) > cells:
        raise TooManyCells
    columns = [pl.Series(name, [row.get(name) for row in rows], dtype=pl.String) for name in names]
    return pl.DataFrame(columns), places, rejects
