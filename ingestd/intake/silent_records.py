"""Records of a reading that give no value: their number, and a sentence if no record gives a value."""

from __future__ import annotations

import polars as pl

from ingestd.core.mapping import Mapped, Mapping
from ingestd.core.mapping.column import listed
from ingestd.core.phrases import counted
from ingestd.core.record import Batch


class SilentRecords:
    """Counts the mapped records of one reading that give no entry. Rejected records are not counted.

    ``gives_values``: an entry or a rejection was made, or a record is unchanged. ``notice``: after `take`, the sentence about a
    reading without any value; empty if the reading has a value.
    """

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._count = self._excluded = 0
        self.gives_values = False
        self.notice = ""

    def add(self, records: pl.DataFrame, batch: Batch, mapped: Mapped) -> None:
        """Add the mapped ``records`` of a batch, which may also have unchanged records."""
        self._count += mapped.valueless
        is_whole = records.height == batch.record_count
        if mapped.entries.height or mapped.rejects or not is_whole:
            self.gives_values = True
        if mapped.valueless and not self.gives_values:
            self._excluded += self._mapping.count_excluded(records, batch.facts)

    def take(self, records: int) -> int:
        """Return the number of records without a value at the end of a reading with this number of ``records``."""
        if self.gives_values or not records:
            return self._count
        reasons = []
        if self._excluded:
            reasons.append(f"'where' excludes {self._excluded}")
        if other := self._count - self._excluded:
            reasons.append(f"{other} {'has' if other == 1 else 'have'} no value in {listed(self._mapping.value_names)}")
        self.notice = f"{counted(records, 'record')} gave no value: {', and '.join(reasons)}."
        return records
