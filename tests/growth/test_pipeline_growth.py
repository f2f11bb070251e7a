"""The work of one pipeline grows linearly with its data: four times the rows, at most 4.6 times the work.

Each case is prepared uncounted at N and at 4N rows, then executed counted, with real parts; see `tests.support.work_counter`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.record import Deletes
from ingestd.delivery.drift import DriftChecker
from ingestd.mirror.rejections import Selection
from tests.support.counted_pipeline import PIECE, CountedPipeline, rows
from tests.support.scripted_source import Row, Script
from tests.support.work_counter import Growth

ROWS = 1_000
SMALL = 300
"""Rows of a case with small pieces, which are as many pieces as the other cases have or more."""
FILES = 64

Act = Callable[[CountedPipeline, int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``prepare`` is not counted, ``act`` is. ``piece``: rows of a batch, of a request and of a transaction.

    Rejected rows are in an index by hash. A transaction that changes some of them writes a page for each, but never more than
    all pages. The bytes are linear only while there are more pages than rows in a transaction: such a case has small pieces, so
    that the same rule applies to both sizes.
    """

    name: str
    act: Act
    prepare: Act
    columns: tuple[str, ...] = ()
    deletes: Deletes = "keep"
    size: int = ROWS
    piece: int = PIECE
    guard: Guard = DEFAULT_GUARD
    """Without a guard, entries are not staged."""

    def __str__(self) -> str:
        return self.name


async def nothing(_: CountedPipeline, __: int) -> None:
    """Prepare nothing."""


async def loaded(pipeline: CountedPipeline, count: int) -> None:
    """Read and deliver everything once."""
    pipeline.script.write("p", rows(count))
    await pipeline.read_and_deliver()


async def first_pass(pipeline: CountedPipeline, count: int) -> None:
    await loaded(pipeline, count)
    assert len(pipeline.held()) == count


async def unchanged(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(count))
    await pipeline.read_and_deliver()


async def ten_changed(pipeline: CountedPipeline, count: int) -> None:
    content = rows(count)
    for number in range(0, count, count // 10):
        content[number] = content[number] | {"v": "9"}
    pipeline.script.write("p", content)
    await pipeline.read_and_deliver()
    assert list(pipeline.held().values()).count("9") == 10


async def one_column_changed(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(count, b="3"))
    await pipeline.read_and_deliver()
    assert sorted(pipeline.held().values()) == ["1"] * count + ["3"] * count


async def all_changed(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(count, a="3"))
    await pipeline.read_and_deliver()
    assert set(pipeline.held().values()) == {"3"}


async def reordered(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(count)[::-1])
    await pipeline.read_and_deliver()


async def quarter_removed(pipeline: CountedPipeline, count: int) -> None:
    """Remove as many as the guard lets pass."""
    pipeline.script.write("p", rows(count)[count // 4 :])
    await pipeline.read_and_deliver()
    assert len(pipeline.held()) == count - count // 4


def repeating(count: int, value: str = "1") -> list[Row]:
    """Make a third as many keys as rows, each key in three batches far apart; one of the two columns repeats its value."""
    keys = count // 3
    return [{"k": f"hour-{number % keys:06d}", "a": value, "b": f"{value}-{number}"} for number in range(count)]


async def repeated_keys(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", repeating(count))
    await pipeline.read_and_deliver()
    assert len(pipeline.held()) == 2 * (count // 3)


async def repeated_keys_known(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", repeating(count))
    await pipeline.read_and_deliver()


async def repeated_keys_again(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", repeating(count, "2"))
    await pipeline.read_and_deliver()
    assert all(value.startswith("2") for value in pipeline.held().values())


async def all_rejected(pipeline: CountedPipeline, count: int) -> None:
    pipeline.service.bad = lambda _: True
    pipeline.script.write("p", rows(count))
    await asyncio.to_thread(pipeline.read)
    await pipeline.deliver()
    assert pipeline.mirror.status.rejected() == count
    pipeline.service.bad = lambda _: False


async def retry_of_all(pipeline: CountedPipeline, count: int) -> None:
    await pipeline.mirror.rejected.retry(Selection())
    await pipeline.deliver()
    assert pipeline.mirror.status.rejected() == 0
    assert len(pipeline.held()) == count


async def unaddressed(pipeline: CountedPipeline, count: int) -> None:
    """Make every record rejected by the mapping, because its key is empty."""
    pipeline.script.write("p", [{"k": "", "v": str(number)} for number in range(count)])
    await asyncio.to_thread(pipeline.read)
    assert pipeline.mirror.status.rejected() == count


async def retry_of_records(pipeline: CountedPipeline, count: int) -> None:
    await pipeline.mirror.rejected.retry(Selection())
    pipeline.reader.remap()
    await asyncio.to_thread(pipeline.read)
    assert pipeline.mirror.status.rejected() == count


async def rejected_vanish(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(1))
    await asyncio.to_thread(pipeline.read)
    assert pipeline.mirror.status.rejected() == 0


async def changed_by_others(pipeline: CountedPipeline, count: int) -> None:
    await loaded(pipeline, count)
    held = pipeline.service.store.entries[pipeline.sink]
    for key in list(held)[::2]:
        held[key] = held[key] | {"value": "theirs"}
    for key in list(held)[1::4]:
        del held[key]


async def check_and_repair(pipeline: CountedPipeline, count: int) -> None:
    async with pipeline.delivering() as running:
        checker = DriftChecker(
            mirror=pipeline.mirror.delivery,
            drift=pipeline.mirror.drift,
            client=running.client,
            emit=pipeline.events.append,
        )
        checked = await checker.check(pipeline.address, pipelines=["pipe"], mode="repair", remove_added=True)
    assert checked.handled == count // 2 + count // 4
    await pipeline.deliver()
    assert list(pipeline.held().values()) == ["1"] * count


async def small_files(pipeline: CountedPipeline, count: int) -> None:
    for number in range(count):
        pipeline.script.write(f"file-{number:05d}", [{"k": f"{number}-{part}", "v": "1"} for part in range(2)])
    await pipeline.read_and_deliver()
    assert len(pipeline.script.acknowledged) == count


async def small_files_known(pipeline: CountedPipeline, count: int) -> None:
    await small_files(pipeline, count)


async def small_files_of_same_keys(pipeline: CountedPipeline, count: int) -> None:
    """Write files with other values of the same keys, as a daily export does."""
    for number in range(count):
        pipeline.script.write(f"file-{number:05d}", [{"k": str(part), "v": str(number)} for part in range(2)])
    await pipeline.read_and_deliver()
    assert len(pipeline.script.acknowledged) == count


async def acknowledged_one_by_one(pipeline: CountedPipeline, count: int) -> None:
    """Acknowledge to the source after each request, as the supervisor does."""
    for number in range(count):
        pipeline.script.write(f"file-{number:05d}", [{"k": f"{number}", "v": "1"}])
    await asyncio.to_thread(pipeline.read)
    (lane,) = await pipeline.mirror.delivery.lanes()
    while claim := await pipeline.mirror.delivery.claim(lane.id, max_items=1, max_bytes=1000):
        await pipeline.mirror.delivery.acknowledge(claim)
        pipeline.acknowledge()
        await pipeline.mirror.delivery.lanes()
    assert len(pipeline.script.acknowledged) == count


async def read_often(pipeline: CountedPipeline, count: int) -> None:
    """Change one partition repeatedly."""
    for number in range(count):
        pipeline.script.write("p", [{"k": "k", "v": str(number)}])
        await asyncio.to_thread(pipeline.read)


async def pending_segments(pipeline: CountedPipeline, count: int) -> None:
    """Read everything while the service is unavailable, in segments of one entry; then end the daemon."""
    pipeline.script.write("p", rows(count))
    await asyncio.to_thread(pipeline.read)
    pipeline.close()
    with closing(sqlite3.connect(pipeline.path)) as connection, connection:
        newest = connection.execute("SELECT max(id) FROM segment").fetchone()[0]
        connection.execute(
            "UPDATE entry SET segment = ? + CAST(substr(key, length('part-') + 1) AS INTEGER)", (newest + 1,)
        )  # fmt: skip
        connection.execute(
            "INSERT INTO segment (id, sink, partition, kind, items, live, bytes, run, row_steps, body)"
            " SELECT segment, sink, partition, 'create', 1, 1, 80, 0, X'', CAST(json_array("
            " json_object('key', key, 'value', value, 'dataType', data_type)) AS BLOB) FROM entry"
        )
        connection.execute("DELETE FROM segment WHERE id <= ?", (newest,))


async def start_and_deliver(pipeline: CountedPipeline, count: int) -> None:
    pipeline.open()
    await pipeline.deliver()
    assert len(pipeline.held()) == count


async def known_to_the_service(pipeline: CountedPipeline, count: int) -> None:
    """Create a sink with these keys in the service, half of them with other values, and a new mirror."""
    for number, row in enumerate(rows(count)):
        entry = {"key": row["k"], "value": str(number % 2), "dataType": "scalar"}
        pipeline.service.store.create_entry(pipeline.workspace, pipeline.sink, entry)


async def adoption(pipeline: CountedPipeline, count: int) -> None:
    pipeline.script.write("p", rows(count))
    await pipeline.read_and_deliver()
    assert list(pipeline.held().values()) == ["1"] * count


CASES = [
    Case(name="first pass", prepare=nothing, act=first_pass),
    Case(name="unchanged", prepare=loaded, act=unchanged),
    Case(name="ten changed", prepare=loaded, act=ten_changed),
    Case(name="one of two columns changed", prepare=loaded, act=one_column_changed, columns=("a", "b"), guard=Guard()),
    Case(name="all changed", prepare=loaded, act=all_changed),
    Case(name="reordered", prepare=loaded, act=reordered),
    Case(name="a quarter removed", prepare=loaded, act=quarter_removed, deletes="remove"),
    Case(name="repeated keys", prepare=nothing, act=repeated_keys, columns=("a", "b"), size=900),
    Case(
        name="repeated keys again", prepare=repeated_keys_known, act=repeated_keys_again, columns=("a", "b"), size=900
    ),
    Case(name="retry of all rejected", prepare=all_rejected, act=retry_of_all, size=SMALL, piece=4),
    Case(name="retry of all records", prepare=unaddressed, act=retry_of_records, piece=4),
    Case(name="rejected records vanish", prepare=unaddressed, act=rejected_vanish, size=SMALL, piece=2),
    Case(name="drift check and repair", prepare=changed_by_others, act=check_and_repair),
    Case(name="small files", prepare=nothing, act=small_files, size=FILES),
    Case(name="small files of the same keys", prepare=nothing, act=small_files_of_same_keys, size=FILES),
    Case(name="acknowledged one by one", prepare=nothing, act=acknowledged_one_by_one, size=100),
    Case(name="one file read often", prepare=nothing, act=read_often, size=FILES // 2),
    Case(name="pending segments at start", prepare=pending_segments, act=start_and_deliver, size=2_500),
    Case(name="adoption of a large sink", prepare=known_to_the_service, act=adoption),
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_four_times_the_data_causes_at_most_4_6_times_the_work(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.intake.run._ENTRIES_IN_COMMIT", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.segments.ITEMS", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.intake_store.PAGE", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.run_finisher.PAGE", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.absent_entries.PAGE", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.acknowledgement._PARTITIONS", FILES // 2)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.run_finisher.RUNS_APART", FILES // 16)
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.snapshots.KEPT", FILES // 8)
    monkeypatch.setattr("ingestd.mirror.sqlite.delivery.delivery_store._PAGE", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.rejections.rejected_store._PAGE", case.piece)
    monkeypatch.setattr("ingestd.mirror.sqlite.drift.drift_store._PAGE", case.piece)
    growth = Growth()
    for size in (case.size, 4 * case.size):
        script = Script(deletes=case.deletes, batch_rows=case.piece)
        with growth.at(size) as work, work.uncounted():
            pipeline = CountedPipeline(
                tmp_path / str(size),
                work,
                script=script,
                columns=case.columns,
                max_items=case.piece,
                guard=case.guard,
            )
            await case.prepare(pipeline, size)
            async with pipeline.counted():
                await case.act(pipeline, size)
            pipeline.close()
    growth.check()
    growth.check_peaks()
