"""The scratch file of asammdf. It holds the sorted records of a file that mixes records of several groups.

The scratch file is in memory, up to a limit. Records above the limit are not stored, but sorted again when they are read.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from asammdf.blocks import mdf_v4

from ingestd.sdk import SourceBroken


@dataclass(frozen=True, slots=True)
class _Mixed:
    """A range of the file with mixed records. ``rest``: the first bytes of a record that begins in the previous range."""

    position: int
    size: int
    rest: bytes
    arguments: tuple[Any, ...]
    """The further arguments of the library's sorting function, after the bytes and the lists of records by group."""
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _GroupPiece:
    """The compressed records of one group from a range.

    ``start`` and ``size``: the range of the scratch file from which the library reads them.
    """

    start: int
    size: int
    mixed: _Mixed
    group: int


class _NotedReads:
    """A file that records its last read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.position = 0
        self.content = b""

    def read(self, size: int) -> bytes:
        self.position = self._file.tell()
        self.content = self._file.read(size)
        return self.content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class SortedRecords:
    """The scratch file. ``limit``: the maximum number of bytes in memory. ``name``: the file with the mixed records."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._kept = io.BytesIO()
        self._position = 0
        self._end = 0
        self._pieces: list[_GroupPiece] = []
        self._reads = _NotedReads(io.BytesIO())
        self._mixed: _Mixed | None = None
        self._groups: Iterator[int] = iter(())
        self._sorted_of: tuple[_Mixed, dict[int, bytes]] | None = None
        """The range that was sorted last, and its records by group. Several groups may be read from one range."""

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, or to the end."""
        self._position = self._end if whence == io.SEEK_END else position
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def write(self, data: bytes) -> int:
        """Append data. Above the limit, only record how the data can be sorted again.

        Raises:
            SourceBroken: the data can't be sorted again.
        """
        group = next(self._groups, None)
        if self._end + len(data) <= self._limit and not self._pieces:
            self._kept.write(data)
        elif self._mixed is None or group is None:
            raise SourceBroken(
                f"{self._name} has mixed records of several groups in compressed blocks, and sorting them needs more than"
                f" {self._limit >> 10} KiB of memory. Open it with the program of the recorder and save it sorted, or set a"
                " larger sort_bytes in format."
            )
        else:
            self._pieces.append(_GroupPiece(self._end, len(data), self._mixed, group))
        self._end += len(data)
        self._position = self._end
        return len(data)

    def read(self, size: int) -> bytes:
        """Return the data at the position, as it was written."""
        at = bisect_right(self._pieces, self._position, key=lambda piece: piece.start) - 1
        if at < 0:
            self._kept.seek(self._position)
            data = self._kept.read(size)
        else:
            data = self._made_again(self._pieces[at])
            if size != len(data) or self._position != self._pieces[at].start:
                raise SourceBroken(f"{self._name} was changed while it was read.")
        self._position += len(data)
        return data

    def close(self) -> None:
        """Release the memory."""
        self._kept.close()
        self._pieces.clear()
        self._sorted_of = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """While the context is open, record which ranges the library sorts. The library sorts when it opens a file."""
        sort_block, sort = mdf_v4.sort_data_block, mdf_v4.MDF4._sort  # noqa: SLF001 - there is no other way in

        def sort_noted(data: bytes, records: dict[int, list[bytes]], *arguments: Any) -> bytes:
            rest: bytes = sort_block(data, records, *arguments)
            reads = self._reads
            is_plain = data.endswith(reads.content)
            before = data[: len(data) - len(reads.content)]
            self._mixed = (
                _Mixed(reads.position, len(reads.content), before, arguments, tuple(records)) if is_plain else None
            )
            self._groups = iter([group for group, found in records.items() if found])
            return rest

        def sort_file(mdf: Any, stream: BinaryIO, *arguments: Any, **named: Any) -> None:
            self._reads = _NotedReads(stream)
            sort(mdf, self._reads, *arguments, **named)
            self._mixed, self._groups, self._reads.content = None, iter(()), b""

        mdf_v4.sort_data_block, mdf_v4.MDF4._sort = sort_noted, sort_file  # noqa: SLF001
        try:
            yield
        finally:
            mdf_v4.sort_data_block, mdf_v4.MDF4._sort = sort_block, sort  # noqa: SLF001

    def _made_again(self, piece: _GroupPiece) -> bytes:
        if self._sorted_of is None or self._sorted_of[0] is not piece.mixed:
            self._sorted_of = None  # else two sorted ranges would be in memory
            self._sorted_of = (piece.mixed, self._sort_again(piece.mixed))
        made: bytes = mdf_v4.lz_compress(self._sorted_of[1][piece.group], store_size=False)
        return made

    def _sort_again(self, mixed: _Mixed) -> dict[int, bytes]:
        self._reads.seek(mixed.position)
        data = mixed.rest + self._reads.read(mixed.size)
        self._reads.content = b""
        records: dict[int, list[bytes]] = {group: [] for group in mixed.groups}
        mdf_v4.sort_data_block(data, records, *mixed.arguments)
        return {group: b"".join(found) for group, found in records.items()}
