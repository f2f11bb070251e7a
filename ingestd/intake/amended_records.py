"""The records of a partial reading, by their positions."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ingestd.core.record import Batch, Position, record_position
from ingestd.mirror.port import Amendment

_MOST = 1_000_000
"""Maximum number of positions, which bounds the memory. With more, a whole reading finds what was removed."""


class AmendedRecords:
    """Collects the positions that are keys, and the keys of the entries that their records produce."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._positions: list[pl.Series] = []
        self._keys: list[pl.Series] = []
        self._count = 0

    def add(self, batch: Batch, keys: Iterable[pl.Series], kept: Iterable[Position]) -> None:
        """Add a batch and the keys of the entries of its records.

        ``kept``: positions of records that name unknown entries, so no entry at them is removed.
        """
        if batch.positions.dtype != pl.String:
            return
        others = [str(reject.position) for reject in batch.rejects] + list(batch.removed or ())
        self._count += batch.positions.len() + len(others)
        self._kept += [str(record_position(position)) for position in kept]
        if self._count > _MOST:
            self._positions.clear()
            self._keys.clear()
            self._kept.clear()
            return
        self._positions += [batch.positions.alias("position"), pl.Series("position", others, dtype=pl.String)]
        self._keys += keys

    def amendment(self, last: Batch) -> Amendment | None:
        """Return what was collected until the last batch; None if its positions are row numbers."""
        if last.positions.dtype != pl.String:
            return None
        empty = pl.Series("position", [], dtype=pl.String)
        positions = pl.concat([empty, *self._positions]).unique() if self._count <= _MOST else None
        keys = pl.concat([empty.alias("key"), *self._keys]).unique()
        return Amendment(positions=positions, kept=tuple(self._kept), keys=keys, is_complete=last.removed is not None)
