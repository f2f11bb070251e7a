"""Blocks of JSON texts. Each text is a record. A block of flat records is read by columns, other blocks record by record."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.ndjson.exact import JsonRecord, LineUnreadable, parse_record
from connectors.formats.ndjson.fast import TooManyCells, may_hold_minus_zero, read_flat
from connectors.formats.text.lines import shown_text
from ingestd.sdk import Reject
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, row_positions

CELLS = 4_000_000
"""The limit for records times names in a frame. Without the limit, objects without common names need quadratic memory."""

_BLANK = b" \t\r\n"


def read_block(block: bytes, location: RecordLocation, record_bytes: int, cells: int) -> Iterator[RecordChunk]:
    """Yield the records of a block of lines that starts at ``location``."""
    lines = block.removesuffix(b"\n").split(b"\n")
    yield from read_texts(lines, location, record_bytes, cells, unit="Line", between=1, size=len(block))


def read_texts(
    texts: Sequence[bytes],
    location: RecordLocation,
    record_bytes: int,
    cells: int,
    *,
    unit: str,
    between: int = 0,
    size: int | None = None,
    facts: Mapping[str, str] | None = None,
) -> Iterator[RecordChunk]:
    """Yield the records of JSON texts; the first text comes after ``location``.

    If the names of records differ a lot, several chunks are yielded. ``unit``: the name of a text in a reason. ``between``:
    the number of bytes between two texts. ``size``: the number of bytes of texts and gaps (None: a gap follows each text).
    """
    whole = sum(map(len, texts)) + between * len(texts) if size is None else size
    try:
        yield _chunk(texts, whole, location, record_bytes=record_bytes, cells=cells, unit=unit, facts=facts or {})
    except TooManyCells:
        if len(texts) == 1:  # a single record can't be split
            yield _chunk(
                texts, whole, location, record_bytes=record_bytes, cells=len(texts[0]), unit=unit, facts=facts or {}
            )
            return
        first, second = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        passed = sum(map(len, first)) + between * len(first)
        for chunk in read_texts(first, location, record_bytes, cells, unit=unit, between=between, facts=facts):
            location = chunk.end
            yield chunk
        rest = whole - passed
        yield from read_texts(second, location, record_bytes, cells, unit=unit, between=between, size=rest, facts=facts)


def _chunk(
    texts: Sequence[bytes],
    size: int,
    location: RecordLocation,
    *,
    record_bytes: int,
    cells: int,
    unit: str,
    facts: Mapping[str, str],
) -> RecordChunk:
    end = RecordLocation(offset=location.offset + size, row=location.row + len(texts))
    numbers: Sequence[int] = range(location.row + 1, end.row + 1)
    if not all(texts):
        kept = [(number, text) for number, text in zip(numbers, texts, strict=True) if text]
        numbers, texts = [number for number, _ in kept], [text for _, text in kept]
    rejects: list[Reject] = []
    records = None
    if texts and size <= record_bytes and not any(map(may_hold_minus_zero, texts)):
        records = read_flat(texts, cells)
    if records is None:
        records, numbers, rejects = _read_one_by_one(numbers, texts, record_bytes, cells, unit)
    return RecordChunk(records=records, positions=row_positions(numbers), rejects=tuple(rejects), end=end, facts=facts)


def _read_one_by_one(
    numbers: Sequence[int], texts: Sequence[bytes], record_bytes: int, cells: int, unit: str
) -> tuple[pl.DataFrame, list[int], list[Reject]]:
    rows: list[JsonRecord] = []
    kept_numbers: list[int] = []
    rejects: list[Reject] = []
    for number, text in zip(numbers, (text.removeprefix(BOM_UTF8) for text in texts), strict=True):
        if not text.strip(_BLANK):
            continue
        fault = ""
        if len(text) > record_bytes:
            fault = f"is larger than {record_bytes} bytes, the limit for a record"
        else:
            try:
                rows.append(parse_record(text))
                kept_numbers.append(number)
            except LineUnreadable as error:
                fault = str(error)
        if fault:
            reason = f"{unit} {number} {fault}."
            rejects.append(Reject(position=number, reason=reason, record={"text": shown_text(text)}))
    names = field_names(rows)
    if len(names) * len(rows) > cells:
        raise TooManyCells
    return records_to_frame(rows, names), kept_numbers, rejects
