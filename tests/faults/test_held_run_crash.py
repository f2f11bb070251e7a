"""A process dies at every statement of a hold, an approval, a discard or a rollback; the next one ends in the exact state."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ingestd.core.guard import Guard
from ingestd.core.record import Partition
from ingestd.mirror.port import RunSummary, Snapshot
from ingestd.mirror.rollback import RunSelection
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite import SqliteMirror
from tests.contract.mirror_deliverable import SINK, work
from tests.contract.mirror_intake import Row, entries, hashes
from tests.support.crashing_sqlite import each_death

PARTITION = Partition(name="p", deletes="remove")
GUARD = Guard(removed_percent=20, changed_percent=20, minimum=5)
BEFORE: list[Row] = [(f"k{number}", "1") for number in range(6)]
WRONG: list[Row] = BEFORE[:1]
AFTER: list[Row] = [*BEFORE[:2], ("k2", "7"), ("k3", "7"), ("new", "7")]


def read(mirror: SqliteMirror, rows: list[Row], version: int) -> RunSummary:
    state = mirror.intake.open_partition("pipe", PARTITION, SINK, "d")
    known = state.snapshot().hashes.series() if state.snapshot is not None else None
    new = rows if known is None else [row for row in rows if hashes([row])[0] not in known]
    run = mirror.intake.begin_run(state.id, snapshot=True, whole=known is None, guard=GUARD)
    cursor = {"version": version}
    mirror.intake.commit(run, entries=entries(new), records=len(new), rejects=(), cursor=cursor, facts={})
    return mirror.intake.finish_run(
        run, cursor=cursor, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="remove"
    )


def deliver(mirror: SqliteMirror, service: dict[str, str | None]) -> None:
    async def send() -> None:
        while (claim := await mirror.delivery.claim(1, max_items=2, max_bytes=100_000)) is not None:
            for kind, key, value in work(claim):
                if kind == "delete":
                    service.pop(key, None)
                else:
                    service[key] = value
            await mirror.delivery.acknowledge(claim)

    asyncio.run(send())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state file with six delivered entries."""
    path = tmp_path_factory.mktemp("template") / "state.db"
    mirror = SqliteMirror.open(path)
    mirror.intake.activate(["pipe"])
    read(mirror, BEFORE, 1)
    deliver(mirror, {})
    mirror.close()
    return path


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("run_finisher", "absent_entries", "run_effect", "intake_store", "undo_plan"):
        monkeypatch.setattr(f"ingestd.mirror.sqlite.runs.{module}.PAGE", 2)


def replace_and_approve(mirror: SqliteMirror) -> None:
    mirror.intake.activate(["pipe"])
    read(mirror, WRONG, 2)
    mirror.intake.approve(read(mirror, AFTER, 3).id)


def replace_and_discard(mirror: SqliteMirror) -> None:
    mirror.intake.activate(["pipe"])
    read(mirror, WRONG, 2)
    mirror.intake.discard(read(mirror, AFTER, 3).id)


def test_after_a_crash_at_any_statement_an_approved_run_is_delivered_exactly(template: Path, tmp_path: Path) -> None:
    for crash_point, mirror in each_death(template, tmp_path, replace_and_approve):
        at = (crash_point.at, crash_point.statement)
        service: dict[str, str | None] = dict(BEFORE)
        mirror.intake.activate(["pipe"])
        approved = [one for one in mirror.status.held_runs() if one.state == "approved"]
        if (
            crash_point.reached
            and not approved
            and mirror.intake.open_partition("pipe", PARTITION, SINK, "d").cursor == {"version": 1}
        ):
            deliver(mirror, service)
            assert service == dict(BEFORE), f"{at}: a run that was not approved was delivered"
        for one in approved:
            mirror.intake.approve(one.run)
        read(mirror, AFTER, 3)
        for one in mirror.status.held_runs():
            mirror.intake.approve(one.run)
        deliver(mirror, service)
        assert service == dict(AFTER), at
        assert (mirror.status.held_runs(), mirror.status.pending()) == ([], 0), at
    assert crash_point.at > 40, "the crash points cover the work"


def test_after_a_crash_at_any_statement_of_an_approval_the_next_reading_completes_it(
    template: Path, tmp_path: Path
) -> None:
    held = tmp_path / "held.db"
    mirror = SqliteMirror.open(template)
    mirror.close()
    held.write_bytes(template.read_bytes())
    mirror = SqliteMirror.open(held)
    mirror.intake.activate(["pipe"])
    number = read(mirror, AFTER, 3).id
    mirror.close()
    for crash_point, mirror in each_death(held, tmp_path, lambda mirror: mirror.intake.approve(number)):
        service: dict[str, str | None] = dict(BEFORE)
        mirror.intake.activate(["pipe"])
        states = [one.state for one in mirror.status.held_runs()]
        read(mirror, AFTER, 4)
        if states == ["held"]:
            assert [one.run for one in mirror.status.held_runs()] == [number]
            continue
        deliver(mirror, service)
        assert service == dict(AFTER), (crash_point.at, crash_point.statement)
        assert mirror.status.held_runs() == []
    assert crash_point.at > 16, "the crash points cover the work"


def test_after_a_crash_at_any_statement_a_discarded_run_is_not_delivered(template: Path, tmp_path: Path) -> None:
    for crash_point, mirror in each_death(template, tmp_path, replace_and_discard):
        service: dict[str, str | None] = dict(BEFORE)
        mirror.intake.activate(["pipe"])
        assert len(mirror.status.held_runs()) <= 1
        read(mirror, AFTER, 3)
        for one in mirror.status.held_runs():
            mirror.intake.discard(one.run)
        again = read(mirror, AFTER, 4)
        assert again.withheld is not None
        assert again.withheld.state == "discarded"
        deliver(mirror, service)
        assert service == dict(BEFORE), (crash_point.at, crash_point.statement)
        read(mirror, BEFORE, 5)
        assert mirror.intake.open_partition("pipe", PARTITION, SINK, "d").withheld is None
    assert crash_point.at > 30, "the crash points cover the work"


def test_after_a_crash_at_any_statement_a_rollback_is_complete_or_has_not_begun(template: Path, tmp_path: Path) -> None:
    """It restores changed entries, removes created ones, creates removed ones, and holds the content of the run."""
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(template.read_bytes())
    mirror = SqliteMirror.open(wrong)
    replace_and_approve(mirror)
    delivered: dict[str, str | None] = dict(BEFORE)
    deliver(mirror, delivered)
    number = mirror.status.past_runs("pipe", limit=1)[0].summary.id
    mirror.close()
    assert delivered == dict(AFTER)
    selection = RunSelection(run=number)
    begun = 0
    for crash_point, mirror in each_death(wrong, tmp_path, lambda one: one.intake.roll_back(selection, by="root")):
        at = (crash_point.at, crash_point.statement)
        service = dict(delivered)
        mirror.intake.activate(["pipe"])
        if not mirror.status.held_runs():
            deliver(mirror, service)
            assert service == delivered, f"{at}: a rollback that has not begun has changed something"
            mirror.intake.roll_back(selection, by="root")
        else:
            begun += 1
        again = read(mirror, AFTER, 4)
        deliver(mirror, service)
        assert service == dict(BEFORE), at
        (held,) = mirror.status.held_runs()
        assert (held.run, held.created, held.updated, held.removed) == (number, 1, 2, 2), at
        assert again.withheld is not None
        mirror.intake.approve(number)
        deliver(mirror, service)
        assert service == delivered, at
        assert mirror.status.pending() == 0, at
    assert crash_point.at > 12, "the crash points cover the work"
    assert begun > 5, "some of them are in the middle of it"
