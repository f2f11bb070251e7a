"""Detection of new records by their row hashes, before they are mapped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import polars as pl

from ingestd.intake.spill_file import SpillFile

PARTS = 64
"""A spill file of row hashes needs so many parts."""

_IN_MEMORY = 2_000_000
"""So many row hashes of a reading are collected in memory, 16 MB."""

_JOINED_RATIO = 16
"""A batch is joined with at most this many previous hashes for each of its own; measured: half the time of a search.

A join reads all previous hashes. With many batches in one large reading, its time would grow with their square.
A search of the batch's sorted hashes takes its place then.
"""


class Difference:
    """Compares the row hashes of a reading with those of the previous one."""

    def __init__(self, load_previous: Callable[[], pl.Series] | None, spill: SpillFile | None = None) -> None:
        """``load_previous`` returns the sorted row hashes of the previous reading; None: every record is new.

        ``spill``: an empty file with `PARTS` parts for the hashes of a large reading;
        None: they stay in memory.
        """
        self._load_previous = load_previous
        self._previous: pl.Series | None = None
        self._seen: list[pl.Series] = []
        self._collected = 0
        self._spill = spill

    def load(self) -> None:
        """Load the row hashes of the previous reading, unless they are loaded already."""
        if self._load_previous is not None:
            self._previous, self._load_previous = self._load_previous(), None

    def mask_new(self, hashes: pl.Series) -> pl.Series:
        """Return a boolean mask over ``hashes``: True if the previous reading had no such record.

        The hashes are added to those that `seen` returns.
        """
        self.load()
        self._collect(hashes)
        if self._previous is None or not self._previous.len():
            # `pl.repeat` evaluates an expression, which takes longer than the whole comparison of a small file.
            return pl.Series([True]).new_from_index(0, hashes.len())
        missing = self._find_missing(self._previous, hashes.sort())
        # A record is new if its hash is new. So the new hashes mark the records, and nothing restores the order of the batch.
        return hashes.is_in(missing.implode())

    def seen(self) -> pl.Series:
        """Return all row hashes of this reading, sorted (``pl.UInt64``). Nothing can be compared afterwards."""
        self._previous = None  # no longer needed, and as large as the result
        if self._spill is None or not self._spill.exists:
            return pl.concat([pl.Series("row_hash", [], dtype=pl.UInt64), *self._seen]).sort()
        self._write(self._spill)
        parts = (pl.concat(self._spill.frames(part)).to_series().sort() for part in range(PARTS))
        return pl.concat(list(parts)).set_sorted()

    def _collect(self, hashes: pl.Series) -> None:
        self._seen.append(hashes)
        self._collected += hashes.len()
        if self._spill is not None and self._collected >= _IN_MEMORY:
            self._write(self._spill)

    def _write(self, spill: SpillFile) -> None:
        """Move the hashes from memory to the parts of the file: equal ranges of the 64-bit integers."""
        ordered = pl.concat([pl.Series("row_hash", [], dtype=pl.UInt64), *self._seen]).sort()
        bounds = pl.Series([(part << 64) // PARTS for part in range(1, PARTS)], dtype=pl.UInt64)
        edges = [0, *ordered.search_sorted(bounds).to_list(), ordered.len()]
        for part, (start, end) in enumerate(pairwise(edges)):
            spill.append(part, ordered[start:end].to_frame())
        self._seen, self._collected = [], 0

    @staticmethod
    def _find_missing(previous: pl.Series, ordered: pl.Series) -> pl.Series:
        """Return the values of ``ordered`` that ``previous`` lacks. Both are sorted, and ``previous`` is not empty."""
        if previous.len() > _JOINED_RATIO * ordered.len():
            indexes = previous.search_sorted(ordered).clip(0, previous.len() - 1)
            return ordered.filter(previous.gather(indexes) != ordered)
        # For each value, an as-of join finds the greatest previous hash that is not above it. It reads both from start to end.
        joined = (
            ordered.alias("hash")
            .to_frame()
            .set_sorted("hash")
            .join_asof(
                previous.alias("previous").to_frame().set_sorted("previous"),
                left_on="hash",
                right_on="previous",
                coalesce=False,
            )
        )
        return joined.filter(pl.col("hash").ne_missing(pl.col("previous")))["hash"]
