"""Sorts the entries of a large reading by key before the mirror stores them.

The mirror's entries are a B-tree by key. If entries come in file order, every batch touches all pages of the tree. In key
order, each page is touched once. So the cost of an entry does not grow with the number of entries (decision record 0026).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Self

import polars as pl

from ingestd.intake.spill_file import SpillFile

RANGES = 64
ROWS_AT_ONCE = 50_000
"""The approximate number of entries in memory at once."""


class EntrySorter:
    """Collects entries in a temporary file, divided by ranges of keys. Use it as a context: its end deletes the file."""

    def __init__(self, folder: Path) -> None:
        """``folder``: for the temporary file, on a disk with room for the entries."""
        self.height = 0
        """The number of collected entries."""
        self._file = SpillFile(folder, parts=RANGES, content="entries")
        self._bounds: pl.Series | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, entries: pl.DataFrame) -> None:
        """Add entries with the columns of a mapping.

        Raises:
            MirrorFull: the temporary file can't be written.
        """
        ordered = entries.sort("key", maintain_order=True)  # stable: entries with equal keys keep their order
        if self._bounds is None:
            # The first entries are a sample. If it is not typical, the parts differ in size, but the result is correct.
            self._bounds = ordered["key"].gather([ordered.height * part // RANGES for part in range(1, RANGES)])
        edges = [0, *ordered["key"].search_sorted(self._bounds).to_list(), ordered.height]
        for part, (start, end) in enumerate(pairwise(edges)):
            if start < end:
                self._file.append(part, ordered[start:end])
        self.height += ordered.height

    def drain(self) -> Iterator[pl.DataFrame]:
        """Yield all entries in pieces, and empty the sorter.

        The keys of a part precede the keys of the next part. Entries with equal keys keep the order in which they were added. A
        piece is not sorted.
        """
        for part in range(RANGES):
            piece: list[pl.DataFrame] = []
            rows = 0
            for frame in self._file.frames(part):
                piece.append(frame)
                rows += frame.height
                if rows >= ROWS_AT_ONCE:
                    yield pl.concat(piece)
                    piece, rows = [], 0
            if piece:
                yield pl.concat(piece)
        self._file.clear()
        self._bounds, self.height = None, 0
