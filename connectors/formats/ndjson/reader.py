"""The NDJSON reader: one object in each line, with exact values, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import polars as pl
from msgspec.structs import replace

from connectors.formats.ndjson.block import CELLS, read_block
from connectors.formats.text import DETECT, TextFile, open_text
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, RecordChunk, RecordLocation, row_positions


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
    """Yield the records of a file with one JSON object in each line. At least one chunk is yielded.

    Positions are line numbers from 1; blank lines have a number but are no record. A field that a record lacks is null.
    ``start``: the ``end`` of an earlier chunk (None: the beginning).

    Raises:
        SourceBroken: the file is empty.
    """
    text = open_text(file, encoding)
    location = start or RecordLocation(offset=text.encoding.mark)
    if start is not None:
        text.seek(start.offset)
    buffer, final, is_empty = b"", False, True
    while True:
        if not final:
            more = text.read(block_bytes)
            final = not more
            buffer += more
        if not buffer:
            break
        end = len(buffer) if final else buffer.rfind(b"\n") + 1
        if end:
            chunks = read_block(buffer[:end], location, record_bytes, cells)
            buffer = buffer[end:]
        elif len(buffer) > record_bytes:
            chunk, buffer = _skip_line(text, buffer, location, block_bytes, record_bytes)
            chunks = iter((chunk,))
        else:
            continue
        is_empty = False
        for chunk in chunks:
            location = chunk.end
            yield replace(chunk, facts=text.facts)
    if is_empty and start is None:
        raise SourceBroken(f"{name} is empty: it has no lines.")
    if is_empty:
        yield RecordChunk(records=pl.DataFrame(), positions=row_positions([]), end=location, facts=text.facts)


def _skip_line(
    file: TextFile, buffer: bytes, location: RecordLocation, block_bytes: int, record_bytes: int
) -> tuple[RecordChunk, bytes]:
    """Reject a line above the size limit, and return the bytes that were read after its end."""
    rejected = next(read_block(buffer, location, record_bytes, CELLS))
    offset = location.offset
    while buffer and b"\n" not in buffer:
        offset += len(buffer)
        buffer = file.read(block_bytes)
    end = buffer.find(b"\n") + 1
    return replace(rejected, end=RecordLocation(offset=offset + end, row=location.row + 1)), buffer[end:]
