"""The Python objects of a reading do not grow with its rows: none of its steps has all of them in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext, mark_last
from tests.support.scripted_source import NoOptions

ROWS = 2_500


class Table(Connector):
    """A snapshot of ``rows`` rows. ``skipped``: every such row is missing; 0: none."""

    Options = NoOptions

    def __init__(self, base: Path, rows: int) -> None:
        super().__init__(NoOptions(), SourceContext(pipeline="p", base=base, now=lambda: 0.0))
        self.rows = rows
        self.skipped = 0

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="table", deletes="remove")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        return mark_last(self._batch(start) for start in range(0, self.rows, ROWS))

    def _batch(self, start: int) -> Batch:
        numbers = pl.int_range(start, start + ROWS, dtype=pl.Int64, eager=True)
        if self.skipped:
            numbers = numbers.filter(numbers % self.skipped != 0)
        records = pl.DataFrame({"k": numbers.cast(pl.String), "v": (numbers * 7).cast(pl.String)})
        return Batch(records=records, positions=numbers.alias("position"), cursor={"end": start}, header=True)


def peak_bytes(folder: Path, rows: int, guard: Guard) -> int:
    """Return the most memory of Python objects in three readings: all rows are new, known, and some are gone."""
    folder.mkdir()
    with closing(SqliteMirror.open(folder / "state.db")) as mirror:
        table = Table(folder, rows)
        reader = Reader(
            pipeline="p", connector=table, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda _: None, guard=guard,
            folder=folder,
        )  # fmt: skip
        tracemalloc.start()
        try:
            (first,) = reader.read_pass().read
            (second,) = reader.read_pass().read
            table.skipped = 1_000
            (third,) = reader.read_pass().read
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (first.created, second.changed, third.removed) == (rows, False, rows // 1_000)
    return peak


@pytest.mark.parametrize("guard", [DEFAULT_GUARD, Guard()])
def test_a_snapshot_needs_no_more_python_objects_if_it_has_more_rows(tmp_path: Path, guard: Guard) -> None:
    few = peak_bytes(tmp_path / "few", 4 * ROWS, guard)
    many = peak_bytes(tmp_path / "many", 16 * ROWS, guard)
    assert many < 2 * few, f"{few} bytes for {4 * ROWS} rows, {many} bytes for {16 * ROWS}"
