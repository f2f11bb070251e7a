"""The number of records of a file: what a format reads is compared with what its file says, if the format knows it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ingestd.core.errors import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk


def check_count(chunks: Iterator[RecordChunk], name: str) -> Iterator[RecordChunk]:
    """Yield the chunks of a whole file; every reading of a format is passed through here.

    Raises:
        SourceBroken: the file has another number of records than its chunks state; after the last chunk.
    """
    read, total = 0, None
    for chunk in chunks:
        read += chunk.records.height + len(chunk.rejects)
        total = chunk.total
        yield replace(chunk, total=None)  # chunks of several files may follow each other
    if total is not None and total != read:
        raise SourceBroken(
            f"{name} is damaged: it says that it has {total} records, and {read} can be read. Let it be written again."
        )
