"""The group stage of a run: collects the states of a whole partition, on disk if they are many, and yields its groups.

The temporary file is in the folder of the state file. States are divided by a hash of their group, and each part is merged
separately. So memory depends on the size of a part, and not on the number of records or on the size of one group.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.groups import Aggregation
from ingestd.core.record import Batch, Reject
from ingestd.intake.spill_file import SpillFile

STATES_IN_MEMORY = 150_000
"""The number of states in memory at which they are merged. If at least half of this number remains, it is written to disk."""
PARTS = 64
ROWS_AT_ONCE = 50_000
_PART = "\0part"


class GroupStage:
    """Groups the records of one reading. Use it as a context: its end deletes the temporary file."""

    def __init__(self, aggregation: Aggregation, folder: Path, *, states_in_memory: int = STATES_IN_MEMORY) -> None:
        """``folder``: for the temporary file, on a disk with room for the partition."""
        self._most = states_in_memory
        self.aggregation = aggregation
        self._memory: list[pl.DataFrame] = []
        self._height = 0
        self._file = SpillFile(folder, parts=PARTS, content="groups")
        self._numbered = True
        self.lacks_group = False
        """Whether a rejected record belongs to no group."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, batch: Batch) -> tuple[Reject, ...]:
        """Add the records of a batch; return the rejected records.

        Raises:
            SourceBroken: the batch has not all records of a partition, or has a record of an unknown group.
            MirrorFull: the temporary file can't be written.
        """
        if batch.partial:
            raise SourceBroken(
                "These are single records of other readings, but this pipeline groups records, and a group needs all of its "
                "records. Correct the records in the original file, and let it be read again."
            )
        if batch.records.height:
            self._numbered = batch.positions.dtype == pl.Int64
        rejects: list[Reject] = []
        for some in _slices(batch):
            states, rejected = self.aggregation.states(some)
            rejects += rejected
            self.lacks_group = self.lacks_group or self.aggregation.count_rejected(states) < len(rejected)
            self._memory.append(states)
            self._height += states.height
            if self._height >= self._most:
                self._merge_memory()
                if self._height >= self._most // 2:
                    self._write()
        return tuple(rejects)

    def batches(self, end: Batch) -> Iterator[Batch]:
        """Yield the groups as batches with the cursor and facts of ``end``, the last batch of the reading.

        The order of the groups depends only on the records. The rejects of a batch are rejected groups.

        Raises:
            MirrorFull: the temporary file can't be written or read.
        """
        self._merge_memory()
        if not self._file.exists:
            [states] = self._memory
            yield self._grouped(states.sort(self._part_of(states), maintain_order=True), end, is_last=True)
            return
        self._write()
        for part in range(PARTS):
            merged = self.aggregation.merge(pl.concat([*self._memory, *self._file.frames(part)]))
            yield self._grouped(merged, end, is_last=part == PARTS - 1)

    def _grouped(self, states: pl.DataFrame, end: Batch, *, is_last: bool) -> Batch:
        found = self.aggregation.records(states, numbered=self._numbered)
        return dataclasses.replace(
            end,
            records=found.records,
            positions=found.positions,
            rejects=found.rejects,
            last=is_last,
            header=True,
        )

    def _merge_memory(self) -> None:
        merged = self.aggregation.merge(pl.concat(self._memory))
        self._memory, self._height = [merged], merged.height

    def _part_of(self, states: pl.DataFrame) -> pl.Series:
        keys = states.select(pl.struct(self.aggregation.spec.by).hash() % PARTS)
        return keys.to_series().cast(pl.Int64).alias(_PART)

    def _write(self) -> None:
        """Append the states in memory to the parts of the file, in their order."""
        [states] = self._memory
        parts = states.with_columns(self._part_of(states)).partition_by(
            _PART, as_dict=True, include_key=False, maintain_order=True
        )
        for (part,), chunk in parts.items():
            self._file.append(int(part), chunk)
        self._memory, self._height = [states.clear()], 0


def _slices(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in parts of at most `ROWS_AT_ONCE` records, because some formats yield very large batches."""
    left = batch.rejects
    for start in range(0, max(batch.records.height, 1), ROWS_AT_ONCE):
        positions = batch.positions[start : start + ROWS_AT_ONCE]
        is_last = start + ROWS_AT_ONCE >= batch.records.height
        here = [one for one in left if is_last or _precedes(one, positions)]
        left = tuple(one for one in left if not is_last and not _precedes(one, positions))
        records = batch.records[start : start + ROWS_AT_ONCE]
        yield dataclasses.replace(batch, records=records, positions=positions, rejects=tuple(here))


def _precedes(found: Reject, positions: pl.Series) -> bool:
    """Return whether a reject is before the last of some positions; text positions have no order."""
    return isinstance(found.position, int) and positions.dtype == pl.Int64 and found.position <= int(positions[-1])
