"""The sequence file: an older or a new state file beside it is distinguished from the newest one."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

from ingestd.core.clock import seconds_of
from ingestd.core.guard import Guard
from ingestd.core.record import Partition
from ingestd.mirror.drift import DriftStatus, RemoveUnexplained
from ingestd.mirror.port import RunSummary
from ingestd.mirror.sqlite import SqliteMirror, acknowledgeable_partitions, back_up_state
from ingestd.wire.writer import Writer
from tests.contract.mirror_deliverable import SINK, work
from tests.support.desired_entries import desire_all
from tests.support.memory_mirror import Desired

Signed = tuple[str, str, str | None]
"""Key, value and author."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "var" / "ingestd.db"


@contextmanager
def opened(path: Path, *, now: float | None = None) -> Iterator[SqliteMirror]:
    mirror = SqliteMirror.open(path) if now is None else SqliteMirror.open(path, now=lambda: now)
    try:
        yield mirror
    finally:
        mirror.close()


def saved(path: Path) -> bytes:
    """Return a backup of a state file after a clean close."""
    return path.read_bytes()


def put_back(path: Path, copy: bytes) -> None:
    path.write_bytes(copy)


def scalars(**values: str) -> dict[str, Desired]:
    return {key: (value, "scalar") for key, value in values.items()}


async def deliver(mirror: SqliteMirror, **values: str) -> list[tuple[str, str, str | None]]:
    """Set and deliver exactly these entries, in a sink with the service id ``s1``."""
    desire_all(mirror, SINK, scalars(**values))
    await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
    return await drained(mirror)


async def drained(mirror: SqliteMirror) -> list[tuple[str, str, str | None]]:
    sent = []
    while (claim := await mirror.delivery.claim(1, max_items=100, max_bytes=100_000)) is not None:
        sent += work(claim)
        await mirror.delivery.acknowledge(claim)
    return sorted(sent)


async def check(
    mirror: SqliteMirror, *service: Signed, unexplained: RemoveUnexplained = "keep", doubt: bool = False
) -> DriftStatus:
    rows = [(key, value, "scalar", author) for key, value, author in service]
    schema = {"key": pl.String, "value": pl.String, "data_type": pl.String, "author": pl.String}
    asked = await mirror.drift.begin_check(1)
    await mirror.drift.show(asked, pl.DataFrame(rows, schema=schema, orient="row"))
    return await mirror.drift.end_check(asked, unexplained=unexplained, doubt=doubt)


async def test_an_ordinary_start_is_not_in_doubt_even_after_a_crash(path: Path) -> None:
    for value in "123":
        mirror = SqliteMirror.open(path)
        assert mirror.sequence.notice == ""
        await deliver(mirror, a=value)
        # After kill -9 no file is closed cleanly, and the lock is free.
        shutil.copytree(path.parent, path.parent.with_name(f"killed-{value}"))
        mirror.close()
        with opened(path.parent.with_name(f"killed-{value}") / path.name) as killed:
            assert killed.sequence.notice == ""
            assert killed.status.doubts() == []


async def test_an_older_copy_is_noticed_even_if_the_newest_was_killed(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1")
    copy = saved(path)
    mirror = SqliteMirror.open(path)
    await deliver(mirror, a="2")
    killed = path.parent.with_name("killed")
    shutil.copytree(path.parent, killed)
    mirror.close()
    for suffix in ("-wal", "-shm"):
        (killed / f"{path.name}{suffix}").unlink(missing_ok=True)
    (killed / path.name).write_bytes(copy)
    with opened(killed / path.name) as restored:
        assert "replaced by an older copy" in restored.sequence.notice
        assert restored.status.doubts() == [str(SINK)]
    with opened(killed / path.name) as again:
        assert again.sequence.notice == "", "it was reported once"
        assert again.status.doubts() == [str(SINK)], "and stays in doubt until the sink is repaired"


async def test_a_copy_counts_as_the_newest_if_nothing_was_sent_after_it(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1")
    copy = saved(path)
    with opened(path) as mirror:
        await deliver(mirror, a="1")
    put_back(path, copy)
    with opened(path) as mirror:
        assert mirror.sequence.notice == ""


async def test_a_state_file_from_another_folder_or_without_its_sequence_file_is_in_doubt(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1")
        sequence = mirror.sequence.path
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(path, elsewhere / path.name)
    with opened(elsewhere / path.name) as copied:
        assert "may be a copy" in copied.sequence.notice
    sequence.write_text("half a numb")
    with opened(path) as mirror:
        assert "may be a copy" in mirror.sequence.notice, "truncated by a power failure"
    with opened(elsewhere / "other.db") as other:
        await deliver(other, a="1")
    (elsewhere / "other.db").replace(path)
    with opened(path) as mirror:
        assert "replaced by another file" in mirror.sequence.notice


async def test_a_state_file_without_a_name_as_a_stored_plan_leaves_it_is_not_in_doubt(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1")
        mirror.sequence.path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM identity")
    with opened(path) as mirror:
        assert mirror.sequence.notice == ""
        assert mirror.status.doubts() == []


async def test_a_sink_in_doubt_is_repaired_as_far_as_its_sources_confirm_the_values(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1", b="1", gone="1")
    copy = saved(path)
    with opened(path) as mirror:
        await deliver(mirror, a="2", b="1", new="1")
    put_back(path, copy)
    service: list[Signed] = [("a", "2", "me"), ("b", "1", "me"), ("new", "1", "me")]
    with opened(path) as mirror:
        status = await check(mirror, *service, doubt=True)
        assert (status.changed, status.removed, status.repaired) == (1, 1, 0), (
            "no source has named them since the start"
        )
    put_back(path, copy)
    with opened(path) as mirror:
        mirror.sequence.path.write_text("")
    with opened(path) as mirror:
        assert mirror.status.doubts()
        desire_all(mirror, SINK, scalars(a="1", b="1", gone="1"))
        status = await check(mirror, *service)
        assert (status.repaired, len(mirror.status.doubts())) == (0, 1), "a check on request repairs nothing"
        status = await check(mirror, *service, doubt=True)
        assert status.repaired == 2
        assert mirror.status.doubts() == []
        assert await drained(mirror) == [("create", "gone", "1"), ("update", "a", "1")]
        assert [one.key for one in mirror.status.unexplained(("desires",), limit=9).entries] == ["new"]
        service = [("a", "1", "me"), ("b", "1", "me"), ("gone", "1", "me"), ("new", "1", "me")]
        assert (await check(mirror, *service, unexplained="own")).swept == 1
        assert await drained(mirror) == [("delete", "new", None)]


async def test_one_check_repairs_a_sink_and_removes_what_no_source_names_if_all_were_read(path: Path) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1", b="1")
    copy = saved(path)
    with opened(path) as mirror:
        await deliver(mirror, a="2", b="1", new="1")
    put_back(path, copy)
    with opened(path) as mirror:
        desire_all(mirror, SINK, scalars(a="1", b="1"))
        mirror.intake.note_pass("desires", began=time.time(), whole=True)
        service: list[Signed] = [("a", "2", "me"), ("b", "1", "me"), ("new", "1", "me")]
        status = await check(mirror, *service, unexplained="own", doubt=True)
        assert (status.repaired, status.swept, status.unexplained) == (1, 1, 0)
        assert await drained(mirror) == [("delete", "new", None), ("update", "a", "1")]
        assert [sink.read for sink in mirror.status.sinks()] == [True], "no other pass is needed"


async def test_a_held_run_is_not_undone_if_a_newer_state_file_has_delivered_it(path: Path) -> None:
    guard = Guard(removed_percent=20, changed_percent=50, factors_percent=50, empty=True, types=True, minimum=1)

    def read(mirror: SqliteMirror) -> RunSummary:
        return desire_all(mirror, SINK, scalars(a="1"), guard=guard)

    with opened(path) as mirror:
        await deliver(mirror, a="1", b="1")
        held = read(mirror).withheld
        assert held
    copy = saved(path)
    with opened(path) as mirror:
        mirror.intake.approve(held.run)
        assert await drained(mirror) == [("delete", "b", None)]
    put_back(path, copy)
    with opened(path) as mirror:
        assert mirror.status.doubts()
        assert read(mirror).withheld
        status = await check(mirror, ("a", "1", "me"), doubt=True)
        assert (status.removed, status.repaired) == (1, 0)
        assert await drained(mirror) == []
        assert [one.run for one in mirror.status.held_runs()] == [held.run]


async def test_a_source_that_gives_each_record_once_confirms_no_value_of_an_older_state_file(path: Path) -> None:
    def named(mirror: SqliteMirror) -> int:
        messages = Partition(name="messages", snapshot=False, replayable=False)
        return mirror.intake.open_partition("pushed", messages, SINK, "digest").id

    async def receive(mirror: SqliteMirror, value: str) -> None:
        frame = pl.DataFrame(
            [("a", value, "scalar", int(value), int(value))],
            schema={"key": str, "value": str, "data_type": str, "row_hash": pl.UInt64, "position": pl.Int64},
            orient="row",
        )
        run = mirror.intake.begin_run(named(mirror), snapshot=False, whole=True)
        mirror.intake.commit(run, entries=frame, records=1, rejects=(), cursor={}, facts={})
        mirror.intake.finish_run(run, cursor={}, seen=None, deletes="keep")
        await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
        await drained(mirror)

    with opened(path) as mirror:
        await receive(mirror, "1")
    copy = saved(path)
    with opened(path) as mirror:
        await receive(mirror, "2")
    put_back(path, copy)
    with opened(path) as mirror:
        assert mirror.status.doubts()
        named(mirror)
        status = await check(mirror, ("a", "2", "me"), doubt=True)
        assert (status.changed, status.repaired) == (1, 0)
        assert mirror.status.doubts() == []


@pytest.mark.parametrize(
    ("authors", "swept"),
    [
        ({}, 2),
        ({"x": "ada"}, 1),
        ({"x": None}, 1),
        ({"b": "ada"}, 0),
        ({"a": None, "b": None, "x": None, "y": None}, 0),
    ],
    ids=["one account", "written by another", "changed by another", "two accounts", "a service that does not say"],
)
async def test_entries_of_a_lost_state_file_are_recognised_by_the_account_that_wrote_the_others(
    path: Path, authors: dict[str, str | None], swept: int
) -> None:
    with opened(path) as mirror:
        await deliver(mirror, a="1", b="1", x="1", y="1")
        sequence = mirror.sequence.path
    for file in path.parent.iterdir():
        if file != sequence:
            file.unlink()
    service: list[Signed] = [(key, "1", authors.get(key, "me")) for key in "abxy"]
    with opened(path) as mirror:
        assert "An earlier state file" in mirror.sequence.notice
        desire_all(mirror, SINK, scalars(a="1", b="1"))
        frame = pl.DataFrame([(key, value, "scalar") for key, value, _ in service], schema=list(_ROW), orient="row")
        await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=False)
        assert await mirror.delivery.adopt(1, frame) == 2
        await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
        status = await check(mirror, *service, unexplained="own")
        assert (status.swept, status.unexplained) == (swept, 2 - swept)
        assert len(await drained(mirror)) == swept


async def test_who_wrote_a_sink_is_found_out_after_the_first_delivery(path: Path) -> None:
    with opened(path) as mirror:
        desire_all(mirror, SINK, scalars(a="2"))
        mirror.note_written_before(SINK)
        frame = pl.DataFrame([("a", "1", "scalar"), ("x", "1", "scalar")], schema=list(_ROW), orient="row")
        await mirror.delivery.adopt(1, frame)
        await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
        status = await check(mirror, ("a", "1", "me"), ("x", "1", "me"), unexplained="own")
        assert (status.swept, status.unexplained, status.undecided) == (0, 1, True)
        await drained(mirror)
        status = await check(mirror, ("a", "2", "me"), ("x", "1", "me"), unexplained="own")
        assert (status.swept, status.unexplained, status.undecided) == (1, 0, False)


async def test_a_sink_that_no_earlier_state_file_wrote_keeps_unexplained_entries(path: Path) -> None:
    service: list[Signed] = [("a", "1", "me"), ("x", "1", "me")]
    with opened(path) as mirror:
        desire_all(mirror, SINK, scalars(a="1"))
        frame = pl.DataFrame([(key, value, "scalar") for key, value, _ in service], schema=list(_ROW), orient="row")
        await mirror.delivery.adopt(1, frame)
        await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
        status = await check(mirror, *service, unexplained="own")
        assert (status.swept, status.unexplained, status.undecided) == (0, 1, False)


_ROW = ("key", "value", "data_type")


def test_each_start_is_a_newer_attempt_of_the_same_writer_also_after_a_kill_and_with_a_slow_clock(
    path: Path,
) -> None:
    seen = []
    for now in (1_000.0, 1_000.0, 5.0, 5_000_000.0):
        mirror = SqliteMirror.open(path, now=lambda now=now: now)  # type: ignore[misc]
        seen.append(mirror.sequence.writer)
        # After kill -9 no file is closed cleanly, and the lock is free.
        killed = path.parent.with_name(f"killed-{len(seen)}")
        shutil.copytree(path.parent, killed)
        mirror.close()
        path = killed / path.name
    assert len({writer.name for writer in seen}) == 1
    assert all(one.attempt + 1_000_000 <= next_.attempt for one, next_ in pairwise(seen))
    assert seen[-1].attempt == 5_000_000_000


@pytest.mark.parametrize("loss", ["restored", "lost", "moved"])
def test_a_restored_a_lost_and_a_moved_state_file_writes_under_the_same_name(path: Path, loss: str) -> None:
    with opened(path, now=1_000.0) as mirror:
        before = mirror.sequence.writer
    copy = saved(path)
    with opened(path, now=2_000.0):
        pass
    match loss:
        case "restored":
            put_back(path, copy)
        case "lost":
            path.unlink()
        case "moved":
            (path.parent / f".{path.name}.sequence").unlink()
    with opened(path, now=3_000.0) as mirror:
        assert mirror.sequence.writer == replace(before, attempt=3_000_000)


def test_two_state_files_are_two_writers(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "state.db") as one, opened(tmp_path / "b" / "state.db") as other:
        assert one.sequence.writer.name != other.sequence.writer.name


async def test_what_the_service_has_of_a_newer_state_file_puts_every_sink_in_doubt(path: Path) -> None:
    with opened(path, now=1_000.0) as mirror:
        await deliver(mirror, a="1")
        newest = replace(mirror.sequence.writer, attempt=7_000_000_000)
        assert "replaced by an older copy" in mirror.note_behind(newest)
        assert mirror.status.doubts() == [str(SINK)]
    with opened(path, now=2_000.0) as again:
        assert again.status.doubts() == [str(SINK)]
        assert again.sequence.writer.attempt > newest.attempt


async def test_only_segments_that_an_earlier_process_claimed_may_have_been_sent_before(path: Path) -> None:
    with opened(path) as mirror:
        desire_all(mirror, SINK, scalars(a="1"))
        (lane,) = await mirror.delivery.lanes()
        assert lane.claimed_before == 0
        assert await mirror.delivery.claim(lane.id, max_items=1, max_bytes=100) is not None
        assert (await mirror.delivery.lanes())[0].claimed_before == 0
    with opened(path) as mirror:
        (lane,) = await mirror.delivery.lanes()
        claim = await mirror.delivery.claim(lane.id, max_items=1, max_bytes=100)
        assert claim is not None
        assert claim.parts[0].oldest <= lane.claimed_before
        await mirror.delivery.acknowledge(claim)
        desire_all(mirror, SINK, scalars(a="2"))
        claim = await mirror.delivery.claim(lane.id, max_items=1, max_bytes=100)
        assert claim is not None
        assert claim.parts[0].oldest > lane.claimed_before


def test_a_granted_epoch_and_name_stay_for_later_starts(path: Path) -> None:
    granted = Writer(name="shared", epoch=7, attempt=0)
    mirror = SqliteMirror.open(path, now=lambda: 1_000.0, granted=granted)
    mirror.close()
    with opened(path, now=2_000.0) as mirror:
        assert mirror.sequence.writer == Writer(name="shared", epoch=7, attempt=2_000_000)


async def check_changes(mirror: SqliteMirror, *service: tuple[str, str, str]) -> DriftStatus:
    """Compare with the service's entries: key, value, and the time of the last change."""
    frame = pl.DataFrame(
        [(key, value, "scalar", at) for key, value, at in service],
        schema={"key": str, "value": str, "data_type": str, "changed_at": str},
        orient="row",
    )
    asked = await mirror.drift.begin_check(1)
    await mirror.drift.show(asked, frame)
    return await mirror.drift.end_check(asked, doubt=True)


@pytest.mark.parametrize("is_named", [False, True], ids=["not read again", "read again"])
async def test_pending_entries_follow_what_was_sent_after_the_shipment_unless_their_source_was_read(
    path: Path, *, is_named: bool
) -> None:
    shipped = seconds_of("2026-01-01T00:00:01Z")
    assert shipped is not None
    wanted = scalars(late="2", waits="2", absent="2")
    with opened(path) as mirror:
        await deliver(mirror, late="1", waits="1", absent="1")
        desire_all(mirror, SINK, wanted)
    with opened(path) as mirror:
        mirror.note_restored(shipped)
        if is_named:
            desire_all(mirror, SINK, wanted)
        # The former daemon has sent another value of `late`, and removed `absent`.
        await check_changes(mirror, ("late", "3", "2026-01-01T00:00:02Z"), ("waits", "1", "2026-01-01T00:00:00Z"))
        assert mirror.status.doubts() == []
        sent = [("update", "absent", "2"), ("update", "late", "2"), ("update", "waits", "2")]
        assert await drained(mirror) == (sent if is_named else [sent[0], sent[2]])


def test_a_copy_has_the_partitions_that_may_be_acknowledged(path: Path, tmp_path: Path) -> None:
    with opened(path) as mirror:
        desire_all(mirror, SINK, scalars(a="1"))
        back_up_state(path, tmp_path / "pending")
        assert acknowledgeable_partitions(tmp_path / "pending") == frozenset()
        asyncio.run(_deliver_pending(mirror))
        back_up_state(path, tmp_path / "delivered")
        ((partition, cursor),) = acknowledgeable_partitions(tmp_path / "delivered")
        mirror.intake.hold_notifications(lambda *found: found == (partition, cursor))
        assert [one for one, _, _ in mirror.intake.acknowledged_partitions("desires")] == [partition]
        mirror.intake.hold_notifications(lambda *_: False)
        assert mirror.intake.acknowledged_partitions("desires") == []
        assert [one for one, _, _ in mirror.intake.acknowledged_partitions("desires", at_once=True)] == [partition]


async def _deliver_pending(mirror: SqliteMirror) -> None:
    await mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True)
    await drained(mirror)
