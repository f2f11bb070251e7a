"""Which records of a reading are new: a comparison of row hashes, before anything is mapped."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


class Difference:
    """The row hashes of the last reading against those of this one."""

    def __init__(self, before: Callable[[], pl.Series] | None) -> None:
        """``before`` fetches the former hashes, sorted; None: there are none to rely on."""
        self._fetch = before
        self._before: pl.Series | None = None
        self._seen: list[pl.Series] = []

    def begin(self) -> None:
        """Fetch the former hashes, the first time."""
        if self._fetch is not None:
            self._before, self._fetch = self._fetch(), None

    def fresh(self, hashes: pl.Series) -> pl.Series:
        """A mask over ``hashes``: true where the last reading had no such record. Remembers them as seen."""
        self.begin()
        self._seen.append(hashes)
        if self._before is None or not self._before.len():
            return pl.repeat(value=True, n=hashes.len(), dtype=pl.Boolean, eager=True)
        # In order, because a search that jumps about in eight megabytes waits for memory: measured at half the time.
        order = hashes.arg_sort()
        ordered = hashes.gather(order)
        places = self._before.search_sorted(ordered).clip(0, self._before.len() - 1)
        return (self._before.gather(places) != ordered).gather(order.arg_sort())

    def seen(self) -> pl.Series:
        """All hashes of this reading, sorted (``pl.UInt64``)."""
        if not self._seen:
            return pl.Series("row_hash", [], dtype=pl.UInt64)
        return pl.concat(self._seen).sort()
