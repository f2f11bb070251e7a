"""The mirror in SQLite keeps the promises of the port."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from ingestd.mirror.sqlite import Observer, SqliteMirror
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.mirror.sqlite.entries.segments import BODY_BYTES
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.sdk import Deletes, Partition
from tests.contract.mirror_batches import BatchSuite
from tests.contract.mirror_deliverable import SINK, DeliverableSuite, held, scalars, work
from tests.contract.mirror_drift import DriftStage, DriftSuite, rows
from tests.contract.mirror_held_runs import BEFORE, GUARD, HALF, HeldRunSuite
from tests.contract.mirror_intake import IntakeStage, IntakeSuite, entries
from tests.contract.mirror_ownership import OwnershipStage, OwnershipSuite
from tests.contract.mirror_rejections import RejectionSuite
from tests.support.desired_entries import desire_all
from tests.support.memory_mirror import Desired


class SqliteStage(OwnershipStage):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.mirror = SqliteMirror.open(path)
        self._wanted: dict[str, Desired] = {}

    @property
    def deliverable(self) -> DeliveryStore:
        return self.mirror.delivery

    @property
    def intake(self) -> IntakeStore:
        return self.mirror.intake

    @property
    def status(self) -> Observer:
        return self.mirror.status

    @property
    def rejections(self) -> Observer:
        return self.mirror.status

    @property
    def keeper(self) -> RejectedStore:
        return self.mirror.rejected

    @property
    def reader(self) -> Observer:
        return self.mirror.status

    @property
    def checker(self) -> DriftStore:
        return self.mirror.drift

    def restart(self) -> None:
        self.mirror.close()
        self.mirror = SqliteMirror.open(self.path)

    async def deliver_before(self) -> None:
        """Deliver `BEFORE` to an adopted sink."""
        self.intake.activate(["pipe"])
        self.read(BEFORE, deletes="remove", guard=GUARD)
        await self.deliver_all()
        await self.mirror.delivery.remember_sink(1, workspace_id="w", sink_id="s", adopted=True)

    def take_over(self) -> None:
        """Continue as another host does that has restored the state file, and may not know everything."""
        self.restart()
        self.intake.activate(["pipe"])
        self.mirror.note_restored(0.0)

    def desire(self, entries: Mapping[str, Desired | None]) -> int:
        for key, wanted in entries.items():
            if wanted is None:
                self._wanted.pop(key, None)
            else:
                self._wanted[key] = wanted
        desire_all(self.mirror, SINK, self._wanted)
        return 1


@pytest.fixture
def sqlite_stage(tmp_path: Path) -> Iterator[SqliteStage]:
    stage = SqliteStage(tmp_path / "ingestd.db")
    yield stage
    stage.mirror.close()


class OnSqlite:
    """Has the suites of contracts run over a state file."""

    @pytest.fixture
    def stage(self, sqlite_stage: SqliteStage) -> SqliteStage:
        return sqlite_stage


class TestSqliteMirrorDelivery(OnSqlite, DeliverableSuite):
    """Over the state file."""


class TestSqliteMirrorRejections(OnSqlite, RejectionSuite):
    """Over the state file."""


class TestSqliteMirrorHeldRuns(OnSqlite, HeldRunSuite):
    @pytest.mark.parametrize("discarded", [False, True])
    async def test_a_reset_cursor_has_a_withheld_partition_read_again(
        self, sqlite_stage: SqliteStage, discarded: bool
    ) -> None:
        await self.read_before(sqlite_stage)
        held = self.reread(sqlite_stage, HALF)
        if discarded:
            sqlite_stage.intake.discard(held.id)
        assert sqlite_stage.open().withheld == {"version": 2}
        assert sqlite_stage.mirror.cursors.set_cursor("pipe", "p", None)
        state = sqlite_stage.open()
        assert (state.withheld, state.cursor) == (None, None)
        again = self.reread(sqlite_stage, HALF, version=2)
        assert again.withheld is not None
        assert (again.withheld.run, again.withheld.state) == (held.id, "discarded" if discarded else "held")
        assert sqlite_stage.open().withheld == {"version": 2}

    async def test_an_approved_run_is_read_again_after_a_reset(self, sqlite_stage: SqliteStage) -> None:
        await self.read_before(sqlite_stage)
        held = self.reread(sqlite_stage, HALF)
        sqlite_stage.mirror.cursors.set_cursor("pipe", "p", None)
        assert sqlite_stage.intake.approve(held.id).removed == 5
        assert len(await sqlite_stage.deliver_all()) == 5
        assert sqlite_stage.open().cursor is None
        assert not sqlite_stage.read(HALF, deletes="remove", guard=GUARD, version=2).changed


class TestSqliteMirrorBatches(OnSqlite, BatchSuite):
    """Over the state file."""


class TestSqliteMirrorDrift(OnSqlite, DriftSuite):
    """Over the state file, which also keeps who changed an entry."""

    async def test_a_finding_keeps_who_changed_the_entry_and_when_until_the_entry_is_written_again(
        self, stage: DriftStage
    ) -> None:
        lane = stage.desire(scalars(a="1", b="1", c="1"))
        await stage.deliver(lane)
        frame = held(*rows(a="2", b="2", c="2")).with_columns(
            author=pl.Series(["Ada", None, None], dtype=pl.String),
            changed_by=pl.Series([None, "Bo", None], dtype=pl.String),
            changed_at=pl.Series(["2026-12-01T10:00:00Z", "soon", None], dtype=pl.String),
        )
        check = await stage.checker.begin_check(lane)
        await stage.checker.show(check, frame)
        await stage.checker.end_check(check)
        found = {
            key: [(one.found, one.changed_by, one.changed_at) for one in stage.reader.drift_of(key)] for key in "abc"
        }
        assert found == {"a": [("2", "Ada", 1_796_119_200.0)], "b": [("2", "Bo", None)], "c": [("2", "", None)]}
        assert set(stage.reader.open_drift().values()) == {3}
        stage.desire(scalars(a="3"))
        await stage.deliver(lane)
        assert stage.reader.drift_of("a") == []
        await stage.check(lane, *rows(a="3", b="1", c="1"))
        assert (stage.reader.drift_of("b"), stage.reader.open_drift()) == ([], {})


class TestSqliteMirrorOwnership(OnSqlite, OwnershipSuite):
    """Over the state file."""


class TestSqliteMirrorIntake(OnSqlite, IntakeSuite):
    def conflicts(self, stage: IntakeStage) -> list[str]:
        assert isinstance(stage, SqliteStage)
        with closing(sqlite3.connect(stage.path)) as connection:
            return [
                reason for (reason,) in connection.execute("SELECT reason FROM rejected WHERE subject = 'conflict'")
            ]


async def test_entries_with_more_text_than_fits_a_body_are_queued_in_several(sqlite_stage: SqliteStage) -> None:
    values = {key: character * (BODY_BYTES // 2) for key, character in zip("abc", "xyz", strict=True)}
    lane = sqlite_stage.desire({key: (value, "scalar") for key, value in values.items()})
    claim = await sqlite_stage.deliverable.claim(lane, max_items=100, max_bytes=2 * BODY_BYTES)
    assert claim is not None
    assert len(claim.parts) == 3
    assert work(claim) == [("create", key, value) for key, value in values.items()]


@pytest.mark.parametrize(
    ("is_remapped", "deletes"), [(False, "remove"), (True, "remove"), (True, "keep")], ids=["read", "mapped", "kept"]
)
async def test_an_entry_that_becomes_pending_without_a_mapped_record_announces_its_sink(
    sqlite_stage: SqliteStage, deletes: Deletes, *, is_remapped: bool
) -> None:
    sqlite_stage.intake.activate(["one", "two"])
    sqlite_stage.read([("a", "1")], pipeline="one")
    sqlite_stage.read([("a", "2")], pipeline="two")
    await sqlite_stage.deliver_all()
    announced: list[int] = []
    sqlite_stage.mirror.on_pending = announced.append
    if is_remapped:  # by another mapping, and back
        sqlite_stage.open(pipeline="one", digest="other")
    present = [("a", "1")] if is_remapped else []
    sqlite_stage.read([], pipeline="one", unmapped_rows=present, deletes=deletes, whole=True, version=2)
    assert announced == [1]
    assert await sqlite_stage.deliver_all() == [("update", "a", "2")]


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "read"])
async def test_after_a_take_over_entries_of_a_held_run_are_not_sent_over_those_of_the_service(
    tmp_path: Path, *, is_held: bool
) -> None:
    # The former daemon may have delivered the run, because an operator approved it after the shipment.
    stage = SqliteStage(tmp_path / "state.db")
    await stage.deliver_before()
    stage.take_over()
    reading = HALF if is_held else BEFORE
    summary = stage.read([], deletes="remove", guard=GUARD, version=2, unmapped_rows=reading)
    assert (summary.withheld is not None) is is_held
    check = await stage.checker.begin_check(1)
    found = [(key, "later" if key == "k0" else value, "scalar") for key, value in BEFORE]
    await stage.checker.show(check, pl.DataFrame(found, schema=["key", "value", "data_type"], orient="row"))
    status = await stage.checker.end_check(check, doubt=True)
    assert (status.changed, status.repaired) == (1, 0 if is_held else 1)
    stage.mirror.close()


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "read"])
async def test_after_a_take_over_a_pending_entry_follows_the_service_if_the_run_of_its_source_is_held(
    tmp_path: Path, *, is_held: bool
) -> None:
    # The former daemon has delivered the entry after the shipment, and then a later value.
    stage = SqliteStage(tmp_path / "state.db")
    await stage.deliver_before()
    shipped = [("k0", "pending"), *BEFORE[1:]]
    stage.read(shipped, deletes="remove", guard=GUARD, version=2)
    stage.take_over()
    stage.read([], deletes="remove", guard=GUARD, version=3, unmapped_rows=HALF if is_held else shipped)
    check = await stage.checker.begin_check(1)
    found = held(*rows(**{key: "later" if key == "k0" else value for key, value in BEFORE})).with_columns(
        author=pl.lit(None, pl.String), changed_by=pl.lit(None, pl.String), changed_at=pl.lit("2026-12-01T10:00:00Z")
    )
    await stage.checker.show(check, found)
    await stage.checker.end_check(check, doubt=True)
    assert [value for _, _, value in await stage.deliver(1)] == ([] if is_held else ["pending"])
    stage.mirror.close()


async def test_after_a_take_over_a_record_that_was_pushed_since_is_newer_than_the_value_of_the_service(
    tmp_path: Path,
) -> None:
    stage = SqliteStage(tmp_path / "state.db")
    lane = 1

    def push(**values: str) -> None:
        state = stage.intake.open_partition("pipe", Partition(name="push", snapshot=False, replayable=False), SINK, "d")
        run = stage.intake.begin_run(state.id, snapshot=False, whole=False)
        frame = entries(list(values.items()))
        stage.intake.commit(run, entries=frame, records=len(values), rejects=(), cursor={}, facts={})
        stage.intake.finish_run(run, cursor={}, seen=None, deletes="keep")

    push(before="1", since="1")
    await stage.deliver(lane)
    await stage.mirror.delivery.remember_sink(lane, workspace_id="w", sink_id="s", adopted=True)
    push(before="2")  # pending in the shipment; the former daemon has delivered it, and a later one
    stage.restart()
    stage.mirror.note_restored(0.0)
    push(since="4")  # to the new daemon, before it has compared the sink
    check = await stage.checker.begin_check(lane)
    at = pl.Series(["2026-12-01T10:00:00Z"] * 2, dtype=pl.String)
    found = held(*rows(before="3", since="3")).with_columns(
        author=pl.lit(None, pl.String), changed_by=pl.lit(None, pl.String), changed_at=at
    )
    await stage.checker.show(check, found)
    await stage.checker.end_check(check, doubt=True)
    assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("since", "4")]
    stage.mirror.close()
