"""The JSON reader: the items of one array, or the document itself, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from connectors.formats.json.items import Items
from connectors.formats.ndjson.block import CELLS, read_texts
from connectors.formats.text import DETECT, open_text
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, RecordChunk, RecordLocation


def read_json(
    file: BinaryIO,
    name: str,
    *,
    path: Sequence[str] = (),
    encoding: str = DETECT,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
    cells: int = CELLS,
) -> Iterator[RecordChunk]:
    """Yield the records of a JSON document, at least one chunk.

    ``path``: the members that lead to the array of records; empty: the document is that array, or one record.
    Positions are the items' numbers from 1. Values are as in NDJSON: each number keeps its characters.

    Raises:
        SourceBroken: there is no such array, or the document is truncated; the items before that were read.
    """
    text = open_text(file, encoding)
    facts = text.encoding.facts
    items = Items(text, name, path, block_bytes=block_bytes, record_bytes=record_bytes)
    location, buffered, size = RecordLocation(), list[bytes](), 0
    for item in items:
        buffered.append(item)
        size += len(item)
        if size >= block_bytes:
            for chunk in read_texts(buffered, location, record_bytes, cells, unit="Item", facts=facts):
                location = chunk.end
                yield chunk
            buffered, size = [], 0
    yield from read_texts(buffered, location, record_bytes, cells, unit="Item", facts=facts)
