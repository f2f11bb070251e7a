"""Detection of new records by their row hashes, before they are mapped."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


class Difference:
    """Compares the row hashes of a reading with those of the previous one."""

    def __init__(self, load_previous: Callable[[], pl.Series] | None) -> None:
        """``load_previous`` returns the sorted row hashes of the previous reading; None: every record is new."""
        self._load_previous = load_previous
        self._previous: pl.Series | None = None
        self._seen: list[pl.Series] = []

    def load(self) -> None:
        """Load the row hashes of the previous reading, unless they are loaded already."""
        if self._load_previous is not None:
            self._previous, self._load_previous = self._load_previous(), None

    def mask_new(self, hashes: pl.Series) -> pl.Series:
        """Return a boolean mask over ``hashes``: True if the previous reading had no such record.

        The hashes are added to those that `seen` returns.
        """
        self.load()
        self._seen.append(hashes)
        if self._previous is None or not self._previous.len():
            return pl.repeat(value=True, n=hashes.len(), dtype=pl.Boolean, eager=True)
        # A search for sorted hashes reads the previous ones in order; measured: half the time of a search in any order.
        order = hashes.arg_sort()
        ordered = hashes.gather(order)
        indexes = self._previous.search_sorted(ordered).clip(0, self._previous.len() - 1)
        return (self._previous.gather(indexes) != ordered).gather(order.arg_sort())

    def seen(self) -> pl.Series:
        """Return all row hashes of this reading, sorted (``pl.UInt64``)."""
        if not self._seen:
            return pl.Series("row_hash", [], dtype=pl.UInt64)
        return pl.concat(self._seen).sort()
