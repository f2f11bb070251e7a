"""The row hashes of a reading, processed in ranges so that memory does not grow with the number of hashes.

A row hash has 64 bits. The first bits divide many hashes into ranges of about the same size. Code that needs sorted hashes
processes one range after the other, so that only one range is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Self

import polars as pl

_SORTED = 1 << 21
"""The approximate number of hashes that are sorted at once (16 MiB)."""

_BITS = 64


class RowHashes:
    """Row hashes (``pl.UInt64``), one for each record of a reading, in pieces.

    Each call of ``pieces`` returns all hashes, in pieces. ``count``: the number of hashes.
    """

    def __init__(self, pieces: Callable[[], Iterable[pl.Series]], count: int) -> None:
        self.pieces = pieces
        self.count = count

    @classmethod
    def of(cls, hashes: pl.Series) -> Self:
        """Return the row hashes of a series in memory."""
        return cls(lambda: (hashes,), hashes.len())

    def plus(self, more: Iterable[pl.Series]) -> RowHashes:
        """Return these hashes and more, in this order."""
        added = tuple(more)
        return RowHashes(lambda: chain(self.pieces(), added), self.count + sum(part.len() for part in added))

    def series(self) -> pl.Series:
        """Return all hashes at once, in memory."""
        return pl.concat([_no_hashes(), *self.pieces()], rechunk=False)

    def ranges(self) -> Iterator[HashRange]:
        """Yield the ranges in ascending order. A small number of hashes is one range."""
        bits = (max(0, self.count - 1) // _SORTED).bit_length()
        for number in range(1 << bits):
            parts = (_within(piece, number, bits) for piece in self.pieces())
            yield HashRange(pl.concat([_no_hashes(), *parts], rechunk=False), number, bits)

    def find(self, hashes: pl.Series) -> pl.Series:
        """Return the hashes of this reading that are also in ``hashes`` (signed or unsigned), in no order."""
        wanted = hashes.reinterpret(signed=False).implode()
        return pl.concat([_no_hashes(), *(piece.filter(piece.is_in(wanted)).unique() for piece in self.pieces())])

    def has_any_of(self, hashes: pl.Series) -> bool:
        """Return True if one of ``hashes`` (signed or unsigned) is a hash of this reading."""
        # polars builds a hash table of the argument of `is_in`, so it should be the smaller series.
        wanted = hashes.reinterpret(signed=False).implode()
        return bool(hashes.len()) and any(piece.is_in(wanted).any() for piece in self.pieces())


class HashRange:
    """The sorted ``hashes`` with the same first ``bits`` bits. ``number``: the integer value of these bits."""

    def __init__(self, hashes: pl.Series, number: int, bits: int) -> None:
        self.hashes = hashes.sort()
        self._number = number
        self._bits = bits

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of a statement that selects the range with ``row_hash >> :shift & :mask = :range``."""
        return {"shift": _BITS - self._bits, "mask": (1 << self._bits) - 1, "range": self._number}

    def within(self, hashes: pl.Series) -> pl.Series:
        """Return the ``hashes`` (``pl.UInt64``) that belong to this range."""
        return _within(hashes, self._number, self._bits)

    def mask_absent(self, hashes: pl.Series) -> pl.Series:
        """Return a boolean mask over ``hashes`` of this range (signed or unsigned): True if the reading lacks the hash."""
        if not self.hashes.len():
            return pl.Series([True]).new_from_index(0, hashes.len())
        # A binary search, because each call of `is_in` would build a hash table of all hashes of the range.
        wanted = hashes.reinterpret(signed=False)
        indexes = self.hashes.search_sorted(wanted).clip(0, self.hashes.len() - 1)
        return self.hashes.gather(indexes) != wanted


def _within(hashes: pl.Series, number: int, bits: int) -> pl.Series:
    if not bits:
        return hashes
    first = pl.lit(number << _BITS - bits, dtype=pl.UInt64)
    last = pl.lit((number + 1 << _BITS - bits) - 1, dtype=pl.UInt64)
    return hashes.to_frame("row_hash").filter(pl.col("row_hash").is_between(first, last)).to_series()


def _no_hashes() -> pl.Series:
    return pl.Series("row_hash", [], dtype=pl.UInt64)
