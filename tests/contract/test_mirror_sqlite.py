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
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from tests.contract.mirror_batches import BatchSuite
from tests.contract.mirror_deliverable import SINK, DeliverableSuite, held, scalars
from tests.contract.mirror_drift import DriftStage, DriftSuite, rows
from tests.contract.mirror_held_runs import GUARD, HALF, HeldRunSuite
from tests.contract.mirror_intake import IntakeStage, IntakeSuite
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
