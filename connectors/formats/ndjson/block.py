"""Texts that are each one JSON object, as records: fast where all are flat, one by one elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.ndjson.exact import LineUnreadable, Record, record_of
from connectors.formats.ndjson.fast import TooManyCells, may_hold_minus_zero, read_flat
from connectors.formats.record_chunk import RecordChunk, RecordLocation, escape_stray_bytes
from ingestd.sdk import Reject

CELLS = 4_000_000
"""Records times names that a frame may have: objects that share no names would otherwise square the memory."""

_BLANK = b" \t\r\n"
_SHOWN_BYTES = 1000


def read_block(block: bytes, place: RecordLocation, record_bytes: int, cells: int) -> Iterator[RecordChunk]:
    """The records of a block of lines that starts at ``place``."""
    lines = block.removesuffix(b"\n").split(b"\n")
    yield from read_texts(lines, place, record_bytes, cells, unit="Line", between=1, size=len(block))


def read_texts(
    texts: Sequence[bytes],
    place: RecordLocation,
    record_bytes: int,
    cells: int,
    *,
    unit: str,
    between: int = 0,
    size: int | None = None,
    facts: Mapping[str, str] | None = None,
) -> Iterator[RecordChunk]:
    """Records of JSON texts, the first of which is the one after ``place``; one stretch, or more where names differ much.

    ``unit``: what a text is called in a reason; ``between``: how many bytes part two of them; ``size``: how many bytes all of
    them take where the last has no such part.
    """
    whole = sum(map(len, texts)) + between * len(texts) if size is None else size
    try:
        yield _chunk(texts, whole, place, record_bytes=record_bytes, cells=cells, unit=unit, facts=facts or {})
    except TooManyCells:
        if len(texts) == 1:  # it has as many fields as it has
            yield _chunk(
                texts, whole, place, record_bytes=record_bytes, cells=len(texts[0]), unit=unit, facts=facts or {}
            )
            return
        first, second = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        passed = sum(map(len, first)) + between * len(first)
        for chunk in read_texts(first, place, record_bytes, cells, unit=unit, between=between, facts=facts):
            place = chunk.end
            yield chunk
        rest = whole - passed
        yield from read_texts(second, place, record_bytes, cells, unit=unit, between=between, size=rest, facts=facts)


def _chunk(
    texts: Sequence[bytes],
    size: int,
    place: RecordLocation,
    *,
    record_bytes: int,
    cells: int,
    unit: str,
    facts: Mapping[str, str],
) -> RecordChunk:
    end = RecordLocation(offset=place.offset + size, row=place.row + len(texts))
    numbers: Sequence[int] = range(place.row + 1, end.row + 1)
    if not all(texts):
        kept = [(number, text) for number, text in zip(numbers, texts, strict=True) if text]
        numbers, texts = [number for number, _ in kept], [text for _, text in kept]
    rejects: list[Reject] = []
    records = None
    if texts and size <= record_bytes and not any(map(may_hold_minus_zero, texts)):
        records = read_flat(texts, cells)
    if records is None:
        records, numbers, rejects = _one_by_one(numbers, texts, record_bytes, cells, unit)
    return RecordChunk(
        records=records,
        positions=pl.Series("position", numbers, dtype=pl.Int64),
        rejects=tuple(rejects),
        end=end,
        facts=facts,
    )


def _one_by_one(
    numbers: Sequence[int], texts: Sequence[bytes], record_bytes: int, cells: int, unit: str
) -> tuple[pl.DataFrame, list[int], list[Reject]]:
    rows: list[Record] = []
    places: list[int] = []
    rejects: list[Reject] = []
    for number, text in zip(numbers, texts, strict=True):
        if not text.strip(_BLANK):
            continue
        fault = ""
        if len(text) > record_bytes:
            fault = f"is larger than {record_bytes} bytes, more than one record may have"
        else:
            try:
                rows.append(record_of(text))
                places.append(number)
            except LineUnreadable as error:
                fault = str(error)
        if fault:
            shown = escape_stray_bytes(text[:_SHOWN_BYTES].decode("utf-8", "surrogateescape"))
            rejects.append(Reject(position=number, reason=f"{unit} {number} {fault}.", record={"text": shown}))
    names = field_names(rows)
    if len(names) * len(rows) > cells:
        raise TooManyCells
    return records_to_frame(rows, names), places, rejects
