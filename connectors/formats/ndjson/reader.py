"""NDJSON: one object a line, its values exactly as they were written, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import polars as pl

from connectors.formats.ndjson.block import CELLS, read_block
from connectors.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, RecordChunk, RecordLocation
from connectors.formats.text import DETECT, TextFile, open_text
from ingestd.sdk import SourceBroken


def read_ndjson(
    file: BinaryIO,
    name: str,
    *,
    encoding: str = DETECT,
    start: RecordLocation | None = None,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
    cells: int = CELLS,
) -> Iterator[RecordChunk]:
    """The records of a file with one JSON object a line; at least one stretch.

    Positions are line numbers from 1; blank lines have a number but are no record. Fields differ from record to record:
    one that a record lacks is null. ``start`` is the ``end`` of a stretch read before (None: from the beginning).

    Raises:
        SourceBroken: the file is empty.
    """
    text = open_text(file, encoding)
    place = start or RecordLocation(offset=text.encoding.mark)
    if start is not None:
        text.seek(start.offset)
    facts = text.encoding.facts
    buffer, final, nothing = b"", False, True
    while True:
        if not final:
            more = text.read(block_bytes)
            final = not more
            buffer += more
        if not buffer:
            break
        end = len(buffer) if final else buffer.rfind(b"\n") + 1
        if end:
            chunks = read_block(buffer[:end], place, record_bytes, cells)
            buffer = buffer[end:]
        elif len(buffer) > record_bytes:
            chunk, buffer = _skip(text, buffer, place, block_bytes, record_bytes)
            chunks = iter((chunk,))
        else:
            continue
        nothing = False
        for chunk in chunks:
            place = chunk.end
            yield replace(chunk, facts=facts)
    if nothing and start is None:
        raise SourceBroken(f"{name} is empty: it holds not a single line.")
    if nothing:
        yield RecordChunk(
            records=pl.DataFrame(), positions=pl.Series("position", [], pl.Int64), rejects=(), end=place, facts=facts
        )


def _skip(
    file: TextFile, buffer: bytes, place: RecordLocation, block_bytes: int, record_bytes: int
) -> tuple[RecordChunk, bytes]:
    """Park a line that is larger than we care to hold; what was read beyond its end comes back."""
    parked = next(read_block(buffer, place, record_bytes, CELLS))
    offset = place.offset
    while buffer and b"\n" not in buffer:
        offset += len(buffer)
        buffer = file.read(block_bytes)
    end = buffer.find(b"\n") + 1
    chunk = RecordChunk(
        records=parked.records,
        positions=parked.positions,
        rejects=parked.rejects,
        end=RecordLocation(offset=offset + end, row=place.row + 1),
    )
    return chunk, buffer[end:]
