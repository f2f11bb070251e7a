"""Hashes of the rows of the last reading, so that rows that are read again are recognised.

They are in memory and not in the cursor. After a restart, or if there are more rows than `MOST`, rows are yielded again. This is
exact too, because the mirror compares each entry with its stored value and sends only what differs. It costs time only.
"""

from __future__ import annotations

import polars as pl

MOST = 4_000_000
"""The largest number of hashes, 8 bytes each."""


class KnownRows:
    """The row hashes of one reading."""

    def __init__(self) -> None:
        self._parts: list[pl.Series] = []
        self._count = 0

    def add(self, hashes: pl.Series) -> None:
        """Remember rows of this reading; with more than `MOST` none is remembered."""
        self._count += hashes.len()
        if self._count > MOST:
            self._parts.clear()
        else:
            self._parts.append(hashes)

    def select_new(self, hashes: pl.Series) -> pl.Series:
        """Return a mask that is true for rows that are not among these."""
        known = self._sorted()
        if not known.len():
            return pl.repeat(value=True, n=hashes.len(), dtype=pl.Boolean, eager=True)
        places = known.search_sorted(hashes).clip(0, known.len() - 1)
        return known.gather(places) != hashes

    def _sorted(self) -> pl.Series:
        if len(self._parts) != 1 or not self._parts[0].flags["SORTED_ASC"]:
            merged = pl.concat(self._parts) if self._parts else pl.Series("row_hash", [], dtype=pl.UInt64)
            self._parts = [merged.sort()]
        return self._parts[0]


def hash_rows(records: pl.DataFrame) -> pl.Series:
    """Return a 64-bit hash (``pl.UInt64``) of each row."""
    return records.select(pl.struct(pl.all()).hash().alias("row_hash"))["row_hash"]
