"""The entries of rejected records. These entries keep their values, because a rejected record is not absent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.core.record import Batch, Position, Reject

_UNREAD = 0x9E3779B97F4A7C15
"""Distinguishes the hash of a record that the source could not read from the hash of a readable record with equal fields."""


class RejectedNames:
    """Names the entries of the rejected records of one reading.

    ``hashes``: the hashes of records that the source could not read. They count as records of the reading, because an entry is
    removed if no record has its hash. ``is_complete``: the key of each rejected record is known.
    """

    def __init__(self, mapping: EntryMapping) -> None:
        self._mapping = mapping
        self.hashes: list[pl.Series] = []
        self.is_complete = True

    def of_mapping(
        self,
        records: pl.DataFrame,
        positions: pl.Series,
        hashes: pl.Series,
        facts: Mapping[str, str],
        rejects: Sequence[tuple[Reject, int]],
    ) -> list[pl.DataFrame]:
        """Return the entries of the ``records`` that the mapping rejected, without values."""
        if not rejects:
            return []
        rejected = hashes.is_in(pl.Series([row_hash for _, row_hash in rejects], dtype=pl.UInt64).implode())
        found = self._mapping.name_entries(
            records.filter(rejected), positions.filter(rejected), hashes.filter(rejected), facts
        )
        self.is_complete = self.is_complete and found.is_complete
        return [found.entries]

    def of_source(self, batch: Batch, *, are_groups: bool) -> list[pl.DataFrame]:
        """Return the entries of the rejected records of a batch, without values.

        If the reason names one field, the texts of the other fields are valid. If it names no field, no text is valid: a line
        with a surplus separator has texts in wrong fields. ``are_groups``: the rejects are groups, so their fields are known.
        """
        alike: dict[frozenset[str], list[Reject]] = {}
        for reject in batch.rejects:
            if reject.record and (reject.field or are_groups):
                unknown = {reject.field, *(name for name in self._mapping.fields if name not in reject.record)}
                alike.setdefault(frozenset(unknown), []).append(reject)
            else:
                self.is_complete = False
        return [self._name(batch, unknown, rejects) for unknown, rejects in alike.items()]

    def _name(self, batch: Batch, unknown: frozenset[str], rejects: Sequence[Reject]) -> pl.DataFrame:
        names = dict.fromkeys([*batch.records.columns, *(name for one in rejects for name in one.record)])
        columns = {name: [one.record.get(name) for one in rejects] for name in names}
        records = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
        positions = _positions((one.position for one in rejects), batch.positions.dtype)
        hashes = self._mapping.row_hashes(records, batch.facts) ^ _UNREAD
        found = self._mapping.name_entries(records, positions, hashes, batch.facts, unknown=unknown)
        self.is_complete = self.is_complete and found.is_complete
        self.hashes.append(hashes)
        return found.entries


def _positions(positions: Iterable[Position], kind: pl.DataType) -> pl.Series:
    """Return positions with the type ``kind`` of a batch's positions; null for a position of another type."""
    expected = str if kind == pl.String else int
    return pl.Series("position", [one if isinstance(one, expected) else None for one in positions], dtype=kind)
