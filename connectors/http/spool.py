"""The spool: a temporary file with the records of one reading, until the last page has arrived."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeAlias

import msgspec

from connectors.filesystem import describe_error, temporary_file
from connectors.http.since import ChangeMark
from ingestd.sdk import SourceUnavailable
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A record in the file. ``number``: its number in the reading, from 1. ``page``: the number of its page.

    ``key``: such as ``id=7``; empty without the option ``key``. ``change``: the change mark; None without ``since``.
    """

    offset: int
    size: int
    number: int
    page: int
    key: str
    change: ChangeMark | None = None


Block: TypeAlias = list[tuple[Stored, bytes]]
"""Records, each with its JSON text."""


class Spool:
    """A file of records as JSON text. Offsets and keys are in memory: about 200 bytes for each record."""

    def __init__(self) -> None:
        self._file = temporary_file()
        self._size = 0
        self.stored: list[Stored] = []

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def add(self, text: bytes, *, number: int, page: int, key: str, change: ChangeMark | None = None) -> None:
        """Store a record; see `Stored`."""
        self._file.write(text)
        stored = Stored(offset=self._size, size=len(text), number=number, page=page, key=key, change=change)
        self.stored.append(stored)
        self._size += len(text)

    def text(self, stored: Stored) -> bytes:
        """Return the JSON text of a record."""
        self._file.seek(stored.offset)
        return self._file.read(stored.size)

    def blocks(self, chosen: Sequence[Stored]) -> Iterator[Block]:
        """Yield the chosen records with their texts, in order. No block is empty; a full block has at least BLOCK_BYTES."""
        block: Block = []
        size = 0
        for stored in chosen:
            block.append((stored, self.text(stored)))
            size += stored.size
            if size >= BLOCK_BYTES:
                yield block
                block, size = [], 0
        if block:
            yield block

    def latest(self) -> list[Stored]:
        """Return the last record of each key, and all records without a key, in the order of the reading.

        A record can move to another page during the reading, but it is on one page only once. So if the last page with a key
        has different records with this key, all these records are returned.
        """
        last = {stored.key: stored for stored in self.stored if stored.key}
        return [stored for stored in self.stored if not stored.key or self._is_needed(stored, last[stored.key])]

    def _is_needed(self, stored: Stored, last: Stored) -> bool:
        return stored is last or (stored.page == last.page and self.text(stored) != self.text(last))


@contextmanager
def open_spool() -> Iterator[Spool]:
    """Open a new spool.

    Raises:
        SourceUnavailable: the file can't be created, or can't be written in the context.
    """
    try:
        with closing(Spool()) as spool:
            yield spool
    except OSError as error:
        raise SourceUnavailable(
            f"The records can't be stored in the system's temporary folder (TMPDIR): {describe_error(error)}"
        ) from error


def digest_of(text: bytes) -> str:
    """Return a short digest of a record's text."""
    return hashlib.blake2b(text, digest_size=12).hexdigest()
