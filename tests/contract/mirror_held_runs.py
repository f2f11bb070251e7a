"""The promises of every mirror about held runs, as tests that each implementation inherits."""

from __future__ import annotations

import pytest

from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import Guard
from ingestd.mirror.port import RunSummary, Snapshot
from ingestd.mirror.row_hashes import RowHashes
from tests.contract.mirror_intake import IntakeStage, Row, entries, hashes, reject, row_hash

GUARD = Guard(removed_percent=20, changed_percent=50, factors_percent=50, empty=True, types=True, minimum=5)
BEFORE: list[Row] = [(f"k{number}", "1") for number in range(10)]
HALF = BEFORE[:5]


class HeldRunSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> IntakeStage:
        raise NotImplementedError

    async def read_before(self, stage: IntakeStage) -> None:
        """Read and deliver ten entries."""
        stage.intake.activate(["pipe", "other"])
        stage.read(BEFORE, deletes="remove", guard=GUARD)
        await stage.deliver_all()

    def reread(self, stage: IntakeStage, rows: list[Row], version: int = 2, guard: Guard | None = GUARD) -> RunSummary:
        """Read the partition with ``rows``. Only the new rows are mapped."""
        new = [row for row in rows if row not in BEFORE]
        known = [row for row in rows if row in BEFORE]
        return stage.read(new, deletes="remove", guard=guard, version=version, unmapped_rows=known)

    async def test_the_first_reading_of_a_partition_is_not_held(self, stage: IntakeStage) -> None:
        assert stage.read([], deletes="remove", guard=GUARD).withheld is None
        assert stage.status.held_runs() == []

    async def test_a_held_run_changes_no_entry_and_moves_no_cursor(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        summary = self.reread(stage, HALF)
        assert summary.withheld is not None
        assert summary.withheld.reasons == (
            "It removes 5 of 10 entries (50.0 %); the limit is 20 %. For example 'k5' (1), 'k6' (1), 'k7' (1).",
        )
        assert (summary.withheld.removed, summary.removed, summary.changed) == (5, 0, False)
        assert await stage.deliver_all() == []
        state = stage.open()
        assert (state.cursor, state.withheld) == ({"version": 1}, {"version": 2})
        assert state.snapshot is not None
        assert state.snapshot().hashes.series().to_list() == hashes(BEFORE).to_list()

    async def test_a_held_run_is_not_acknowledged_until_it_is_approved_and_delivered(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        for identity, _, cursor in stage.intake.acknowledged_partitions("pipe"):
            stage.intake.acknowledge(identity, cursor)
        held = self.reread(stage, HALF)
        assert stage.intake.acknowledged_partitions("pipe") == []
        stage.intake.approve(held.id)
        await stage.deliver_all()
        assert [cursor for _, _, cursor in stage.intake.acknowledged_partitions("pipe")] == [{"version": 2}]

    async def test_an_approved_run_is_written_as_it_was_read(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, [*HALF, ("new", "7"), ("k9", "2")])
        stage.restart()
        stage.intake.activate(["pipe", "other"])
        assert [one.run for one in stage.status.held_runs()] == [held.id]
        summary = stage.intake.approve(held.id)
        assert (summary.created, summary.updated, summary.removed) == (1, 1, 4)
        assert await stage.deliver_all() == [
            ("create", "new", "7"), ("delete", "k5", None), ("delete", "k6", None), ("delete", "k7", None),
            ("delete", "k8", None), ("update", "k9", "2"),
        ]  # fmt: skip
        assert stage.status.held_runs() == []
        assert stage.open().cursor == {"version": 2}
        with pytest.raises(RunNotHeld, match="is not held"):
            stage.intake.approve(held.id)

    async def test_a_later_held_run_replaces_the_held_one_and_keeps_its_time(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        first = self.reread(stage, HALF)
        second = self.reread(stage, HALF[:4], version=3)
        assert first.withheld is not None
        assert second.withheld is not None
        assert second.withheld.since == first.withheld.since
        assert stage.status.held_runs() == [second.withheld]
        for operation in (stage.intake.approve, stage.intake.discard):
            with pytest.raises(RunNotHeld, match=f"run {second.id} replaced it"):
                operation(first.id)
        assert stage.intake.approve(second.id).removed == 6

    async def test_a_reading_with_the_content_of_the_held_run_leaves_it_held(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        again = self.reread(stage, HALF, version=3)
        assert again.withheld == held.withheld
        assert stage.open().withheld == {"version": 3}
        stage.intake.approve(held.id)
        assert stage.open().cursor == {"version": 3}
        assert len(await stage.deliver_all()) == 5

    async def test_a_run_of_the_repaired_source_passes_and_ends_the_hold(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        summary = self.reread(stage, [*BEFORE[1:], ("k0", "3")], version=3)
        assert (summary.withheld, summary.replaces, summary.updated, summary.removed) == (None, held.id, 1, 0)
        assert stage.status.held_runs() == []
        assert await stage.deliver_all() == [("update", "k0", "3")]

    async def test_a_held_run_stays_after_a_reading_that_finds_the_source_unchanged(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=False)
        stage.intake.finish_run(run, cursor={"version": 1}, seen=None, deletes="keep")
        assert [one.run for one in stage.status.held_runs()] == [held.id]
        again = self.reread(stage, HALF, version=3)
        assert again.withheld == held.withheld

    async def test_a_discarded_content_is_ignored_until_it_changes(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        assert stage.intake.discard(held.id).run == held.id
        stage.restart()
        stage.intake.activate(["pipe", "other"])
        again = self.reread(stage, HALF, version=3)
        assert again.withheld is not None
        assert again.withheld.state == "discarded"
        assert stage.open().withheld == {"version": 3}
        assert stage.status.held_runs() == []
        changed = self.reread(stage, HALF[:4], version=4)
        assert changed.withheld is not None
        assert changed.withheld.state == "held"
        assert await stage.deliver_all() == []

    async def test_a_discarded_run_cannot_be_approved(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        stage.intake.discard(held.id)
        with pytest.raises(RunNotHeld, match="was discarded"):
            stage.intake.approve(held.id)
        with pytest.raises(RunNotHeld, match="was discarded already"):
            stage.intake.discard(held.id)

    async def test_other_partitions_go_on_while_a_run_is_held(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        stage.read([("other", "1")], name="q", guard=GUARD)
        assert await stage.deliver_all() == [("create", "other", "1")]
        stage.intake.approve(held.id)
        assert len(await stage.deliver_all()) == 5
        assert not stage.open().current, (
            "another partition changed entries, so the differences of the held run are too old"
        )

    async def test_a_run_that_began_before_an_approval_is_read_again(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, [*BEFORE[1:], *[(f"new{number}", "1") for number in range(3)], ("k0", "1000")][3:])
        state = stage.open()
        running = stage.intake.begin_run(state.id, snapshot=True, whole=False, guard=GUARD)
        stage.intake.approve(held.id)
        summary = stage.intake.finish_run(
            running, cursor={"version": 3}, seen=Snapshot(hashes=RowHashes.of(hashes(BEFORE))), deletes="remove"
        )
        assert summary.collided
        assert stage.open().snapshot is None

    async def test_a_new_mapping_reads_the_source_again(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = self.reread(stage, HALF)
        assert stage.open(digest="other mapping").withheld is None
        with pytest.raises(RunNotHeld, match="another mapping"):
            stage.intake.approve(held.id)

    async def test_changed_types_and_factors_hold_a_run(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        scaled = self.reread(stage, [(key, "1000") for key, _ in BEFORE], guard=Guard(factors_percent=50, minimum=10))
        assert scaled.withheld is not None
        (reason,) = scaled.withheld.reasons
        assert reason.startswith(
            "It multiplies 10 of 10 numbers (100.0 %) by a power of ten (another prefix, or a lost decimal"
        )
        assert reason.endswith("For example 'k0' from 1 to 1000, 'k1' from 1 to 1000, 'k2' from 1 to 1000.")
        column = [(key, "1000" if number < 4 else value) for number, (key, value) in enumerate(BEFORE)]
        scaled = self.reread(stage, column, guard=Guard(factors_percent=50, minimum=4))
        assert scaled.withheld is not None
        assert scaled.withheld.reasons[0].startswith("It multiplies 4 of 4 changed numbers (100.0 %) by a power of ten")
        state = stage.open()
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True, guard=Guard(types=True))
        frame = entries([("k0", "1")])
        frame = frame.with_columns(data_type=frame["data_type"].str.replace("scalar", "text"))
        stage.intake.commit(run, entries=frame, records=1, rejects=(), cursor={}, facts={})
        typed = stage.intake.finish_run(
            run, cursor={}, seen=Snapshot(hashes=RowHashes.of(hashes(BEFORE))), deletes="remove"
        )
        assert typed.withheld is not None
        assert typed.withheld.reasons == (
            "It changes the data type of 1 entry. For example 'k0' from 1 (scalar) to 1 (text).",
        )

    async def test_a_reading_without_records_is_held(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        summary = self.reread(stage, [], guard=Guard(empty=True))
        assert summary.withheld is not None
        assert summary.withheld.reasons == (
            "It read no record; the reading before it had 10 entries. For example 'k0' (1), 'k1' (1), 'k2' (1).",
        )

    async def test_records_of_a_held_run_are_rejected_at_once(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        bad = ("bad", "x")
        state = stage.open()
        run = stage.intake.begin_run(state.id, snapshot=True, whole=False, guard=GUARD)
        stage.intake.commit(
            run, entries=entries([]), records=1, rejects=[(reject(2), row_hash(bad))], cursor={}, facts={}
        )
        held = stage.intake.finish_run(
            run, cursor={}, seen=Snapshot(hashes=RowHashes.of(hashes([*HALF, bad]))), deletes="remove"
        )
        assert stage.status.rejected() == 1
        stage.intake.approve(held.id)
        assert stage.status.rejected() == 1
        self.reread(stage, HALF, version=3)
        assert stage.status.rejected() == 0

    async def test_a_failed_reading_keeps_what_the_guard_lets_pass(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        for rows, expected in (([("k0", "2")], [("update", "k0", "2")]), ([(key, "9") for key, _ in BEFORE], [])):
            run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=False, guard=GUARD)
            stage.intake.commit(run, entries=entries(rows), records=1, rejects=(), cursor={}, facts={})
            stage.intake.fail_run(run, "The file is damaged.", broken=True)
            assert await stage.deliver_all() == expected

    async def test_a_reason_of_the_caller_holds_also_the_first_run(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        held = stage.read(BEFORE, deletes="remove", guard=GUARD, reasons=["Column 'unit' is new."])
        assert held.withheld is not None
        assert held.withheld.reasons == ("Column 'unit' is new.",)
        assert (await stage.deliver_all(), stage.open().cursor) == ([], None)
        stage.restart()
        stage.intake.activate(["pipe", "other"])
        assert stage.intake.approve(held.id).created == 10
        assert len(await stage.deliver_all()) == 10
        assert stage.open().cursor == {"version": 1}

    async def test_the_first_run_passes_after_its_source_is_corrected(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        held = stage.read([("k0", "x")], reasons=["Column 'unit' is new."])
        summary = stage.read([("k0", "1")], guard=GUARD, version=2)
        assert (summary.withheld, summary.replaces, summary.created) == (None, held.id, 1)
        assert await stage.deliver_all() == [("create", "k0", "1")]

    async def test_a_run_without_an_effect_passes_in_spite_of_a_reason(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        held = stage.read([("k0", "2")], unmapped_rows=BEFORE[1:], version=2, reasons=["Column 'unit' is new."])
        stage.intake.approve(held.id)
        again = stage.read([("k0", "2"), *BEFORE[1:]], version=3, reasons=["Column 'unit' is new."])
        assert (again.withheld, again.changed, stage.open().cursor) == (None, False, {"version": 3})
        later = stage.read([("k0", "3"), *BEFORE[1:]], version=4, reasons=["Column 'unit' is new."])
        assert later.withheld is not None

    async def test_a_failed_reading_with_a_reason_writes_nothing(self, stage: IntakeStage) -> None:
        await self.read_before(stage)
        for reasons, expected in ((["Column 'unit' is new."], []), ([], [("update", "k0", "2")])):
            run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=False, can_hold=True)
            stage.intake.commit(run, entries=entries([("k0", "2")]), records=1, rejects=(), cursor={}, facts={})
            stage.intake.fail_run(run, "The file is damaged.", broken=True, reasons=reasons)
            assert await stage.deliver_all() == expected

    # ------------------------------------------------------------------------- before the adoption of the sink

    async def adopt(self, stage: IntakeStage, found: list[Row]) -> list[str]:
        """Adopt a sink with the entries ``found``; return the partitions that are held then."""
        (lane,) = await stage.deliverable.lanes()
        await stage.deliverable.remember_sink(lane.id, workspace_id="w", sink_id="s", adopted=False)
        await stage.deliverable.adopt(lane.id, entries(found).select("key", "value", "data_type"))
        held = await stage.deliverable.remember_sink(lane.id, workspace_id="w", sink_id="s", adopted=True)
        assert [one for one in held if one.state != "held"] == []
        return [one.partition for one in held]

    async def test_a_first_reading_that_contradicts_the_sink_is_withdrawn(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        first = stage.read([(key, "1000") for key, _ in BEFORE[1:]], [("k0", "1"), ("new", "1")], guard=GUARD)
        stage.read([("q", "1")], name="q", guard=GUARD)
        assert await self.adopt(stage, [*BEFORE, ("unnamed", "5")]) == ["p"]
        assert await stage.deliver_all() == [("create", "q", "1")], "other partitions are delivered"
        (held,) = stage.status.held_runs()
        assert (held.run, held.created, held.updated, held.removed) == (first.id, 1, 9, 0)
        assert held.reasons[0].startswith(
            "It changes 9 of 10 entries (90.0 %); the limit is 50 %. For example 'k1' from 1 to 1000,"
        )
        assert stage.status.former_values("k1") == [], "nothing of the service was overwritten"
        state = stage.open()
        assert (state.cursor, state.withheld, state.snapshot) == (None, {"version": 1}, None)
        stage.restart()
        stage.intake.activate(["pipe", "other"])
        summary = stage.intake.approve(held.run)
        assert (summary.created, summary.updated, summary.unchanged) == (1, 9, 1)
        assert len(await stage.deliver_all()) == 10
        assert stage.open().cursor == {"version": 1}

    async def test_a_first_reading_within_the_limits_is_delivered(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        stage.read([("k0", "9"), *BEFORE[1:]], guard=GUARD)
        unnamed = [(f"z{number}", "1") for number in range(10)]
        assert await self.adopt(stage, [*BEFORE, *unnamed]) == []
        assert await stage.deliver_all() == [("update", "k0", "9")]
        assert stage.read([("new", "1"), *unnamed], name="r", guard=GUARD).withheld is None
        later = stage.read([(key, "7") for key, _ in unnamed[:5]], name="s", guard=GUARD)
        assert later.withheld is None, "another file of the pipeline has named them"

    async def test_each_first_reading_after_the_adoption_is_compared(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        stage.read([("k0", "1")], guard=GUARD)
        assert await self.adopt(stage, BEFORE) == []
        held = stage.read([(key, "7") for key, _ in BEFORE[1:]], name="r", guard=GUARD).withheld
        assert held is not None
        assert held.reasons[0].startswith("It changes 9 of 9 entries")

    async def test_a_first_reading_is_compared_at_its_end_if_it_ends_after_the_adoption(
        self, stage: IntakeStage
    ) -> None:
        stage.intake.activate(["pipe", "other"])
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=True, guard=GUARD)
        rows = [(key, "1000") for key, _ in BEFORE]
        for part in (rows[:3], rows[3:]):
            stage.intake.commit(run, entries=entries(part), records=5, rejects=(), cursor={}, facts={})
            if part == rows[:3]:
                assert await self.adopt(stage, BEFORE) == []
            assert await stage.deliver_all() == []
        summary = stage.intake.finish_run(
            run, cursor={"version": 1}, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="keep"
        )
        assert summary.withheld is not None
        assert summary.withheld.updated == 10

    async def test_an_interrupted_first_reading_is_withdrawn_and_compared_when_it_is_repeated(
        self, stage: IntakeStage
    ) -> None:
        stage.intake.activate(["pipe", "other"])
        rows = [(key, "1000") for key, _ in BEFORE]
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=True, guard=GUARD)
        stage.intake.commit(run, entries=entries(rows), records=10, rejects=(), cursor={}, facts={})
        stage.restart()
        stage.intake.activate(["pipe", "other"])
        assert await self.adopt(stage, BEFORE) == []
        assert await stage.deliver_all() == []
        assert stage.read(rows, guard=GUARD).withheld is not None

    async def test_a_later_reading_of_a_withdrawn_partition_maps_all_records(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        rows = [(key, "1000") for key, _ in BEFORE]
        stage.read(rows, guard=GUARD)
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=False, guard=GUARD)
        assert await self.adopt(stage, BEFORE) == ["p"]
        summary = stage.intake.finish_run(
            run, cursor={"version": 2}, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="keep"
        )
        assert summary.collided, "its differences are to a reading that was withdrawn"

    async def test_the_other_pipeline_with_a_key_of_a_withdrawn_reading_is_read_again(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        stage.read([(key, "1000") for key, _ in BEFORE], guard=GUARD)
        stage.read([("k0", "1"), ("own", "1")], name="q", pipeline="other", guard=GUARD)
        assert await self.adopt(stage, BEFORE) == ["p"]
        assert stage.open("q", pipeline="other").cursor is None
        assert await stage.deliver_all() == [("create", "own", "1")]

    async def test_without_a_guard_or_without_entries_nothing_is_compared(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        stage.read([(key, "1000") for key, _ in BEFORE])
        assert await self.adopt(stage, BEFORE) == []
        assert len(await stage.deliver_all()) == 10

    async def test_a_guard_that_was_switched_off_before_the_adoption_compares_nothing(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        rows = [(key, "1000") for key, _ in BEFORE]
        stage.read(rows, guard=GUARD)
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=False)
        stage.intake.finish_run(run, cursor={"version": 1}, seen=None, deletes="keep")
        assert await self.adopt(stage, BEFORE) == []
        assert len(await stage.deliver_all()) == 10

    async def test_a_sink_without_entries_holds_no_first_reading(self, stage: IntakeStage) -> None:
        stage.intake.activate(["pipe", "other"])
        stage.read([(key, "1000") for key, _ in BEFORE], guard=GUARD)
        assert await self.adopt(stage, []) == []
        assert len(await stage.deliver_all()) == 10
        assert stage.read([(key, "7") for key, _ in BEFORE], name="r", guard=GUARD).withheld is None
