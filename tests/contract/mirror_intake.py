"""The promises of every mirror to the intake (`IntakeStore`), as tests that each implementation inherits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.core.record import Cursor, Deletes, Partition, Reject, Rejected
from ingestd.mirror.port import PartitionState, RejectedEntry, RunSummary, Snapshot
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from tests.contract.mirror_deliverable import SINK, work

Row = tuple[str, str]
"""Key and value; the record's hash is computed from both, as for records of two fields."""


class IntakeStage(ABC):
    """A mirror with all its sides that can be restarted as after a crash."""

    @property
    @abstractmethod
    def intake(self) -> IntakeStore: ...

    @property
    @abstractmethod
    def deliverable(self) -> DeliveryStore: ...

    @property
    @abstractmethod
    def status(self) -> Observer: ...

    @abstractmethod
    def restart(self) -> None:
        """Discard everything that is not durable."""

    def open(
        self, name: str = "p", *, pipeline: str = "pipe", digest: str = "d", sink: SinkAddress = SINK
    ) -> PartitionState:
        return self.intake.open_partition(pipeline, Partition(name=name), sink, digest)

    def read(
        self,
        *batches: Sequence[Row],
        name: str = "p",
        pipeline: str = "pipe",
        deletes: Deletes = "keep",
        whole: bool | None = None,
        version: int = 1,
        rejects: Sequence[tuple[Reject, int | None]] = (),
        unmapped_rows: Sequence[Row] = (),
        guard: Guard | None = None,
        reasons: Sequence[str] = (),
    ) -> RunSummary:
        """Read a snapshot partition; ``unmapped_rows``: records that are present but were not mapped because they are known."""
        state = self.open(name, pipeline=pipeline)
        is_whole = state.snapshot is None if whole is None else whole
        run = self.intake.begin_run(state.id, snapshot=True, whole=is_whole, guard=guard, can_hold=bool(reasons))
        for number, rows in enumerate(batches, start=1):
            last = number == len(batches)
            self.intake.commit(
                run, entries=entries(rows), records=len(rows), rejects=rejects if last else (),
                cursor={"version": version}, facts={"file.name": name},
            )  # fmt: skip
        rows = [row for batch in batches for row in batch] + list(unmapped_rows)
        return self.intake.finish_run(
            run,
            cursor={"version": version},
            seen=Snapshot(hashes=RowHashes.of(hashes(rows))),
            deletes=deletes,
            reasons=reasons,
        )

    async def deliver_all(self) -> list[tuple[str, str, str | None]]:
        sent = []
        for lane in await self.deliverable.lanes():
            while (claim := await self.deliverable.claim(lane.id, max_items=100, max_bytes=100_000)) is not None:
                sent += work(claim)
                await self.deliverable.acknowledge(claim)
        return sorted(sent)


def row_hash(row: Row) -> int:
    return int(pl.Series(["\0".join(row)]).hash()[0])


def hashes(rows: Sequence[Row]) -> pl.Series:
    return pl.Series("row_hash", [row_hash(row) for row in rows], dtype=pl.UInt64).sort()


def entries(rows: Sequence[Row]) -> pl.DataFrame:
    schema = {"key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.UInt64, "position": pl.Int64}
    made = [(key, value, "scalar", row_hash((key, value)), place) for place, (key, value) in enumerate(rows, start=2)]
    return pl.DataFrame(made, schema=schema, orient="row")


def reject(position: int, reason: str = "It is no number.") -> Reject:
    return Reject(position=position, reason=reason, field="mass", record={"mass": "x"})


class IntakeSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> IntakeStage:
        raise NotImplementedError

    # ----------------------------------------------------------------------------------------- state of a partition

    def test_a_partition_that_was_never_read_has_no_state(self, stage: IntakeStage) -> None:
        state = stage.open()
        assert (state.name, state.cursor, state.snapshot, state.repeats, state.awaiting) == (
            "p",
            None,
            None,
            False,
            None,
        )
        assert stage.open().id == state.id
        assert stage.open("q").id != state.id
        assert stage.open(pipeline="other").id != state.id

    def test_a_finished_reading_stores_its_cursor_and_its_hashes(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "2")], version=7)
        stage.restart()
        state = stage.open()
        assert (state.cursor, state.current, state.repeats) == ({"version": 7}, True, False)
        assert state.snapshot is not None
        assert state.snapshot().hashes.series().to_list() == hashes([("a", "1"), ("b", "2")]).to_list()

    def test_another_mapping_or_another_sink_discards_the_state(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")])
        state = stage.open(digest="another")
        assert (state.cursor, state.snapshot) == (None, None)
        stage.read([("a", "1")])
        state = stage.open(sink=SinkAddress(workspace="bench", by="label", name="Elsewhere"))
        assert (state.cursor, state.snapshot) == (None, None)

    def test_an_unfinished_reading_stores_its_entries_and_no_cursor(self, stage: IntakeStage) -> None:
        state = stage.open()
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
        changed = stage.intake.commit(
            run, entries=entries([("a", "1")]), records=1, rejects=[(reject(3), None)], cursor={"offset": 1}, facts={}
        )
        assert changed == 1
        stage.restart()
        assert stage.open().cursor is None
        assert (stage.status.pending(), stage.status.rejected()) == (1, 1)

    def test_an_incremental_batch_and_its_cursor_become_durable_together(self, stage: IntakeStage) -> None:
        state = stage.open()
        run = stage.intake.begin_run(state.id, snapshot=False, whole=False)
        for version in (1, 2):
            stage.intake.commit(
                run,
                entries=entries([(f"k{version}", "1")]),
                records=1,
                rejects=(),
                cursor={"version": version},
                facts={},
            )
        stage.restart()
        assert stage.open().cursor == {"version": 2}
        assert stage.status.pending() == 2

    def test_a_failed_run_keeps_what_was_committed_and_reports_the_reason(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], version=1)
        run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=True)
        stage.intake.commit(run, entries=entries([("b", "2")]), records=1, rejects=(), cursor={"offset": 1}, facts={})
        stage.intake.fail_run(run, "the share went away", broken=False)
        assert (stage.status.pending(), stage.status.rejected()) == (2, 0)
        (pipeline,) = stage.status.pipelines()
        assert pipeline.failure == "the share went away"

    def test_an_unreadable_partition_is_rejected_until_it_is_readable(self, stage: IntakeStage) -> None:
        for _ in range(2):
            run = stage.intake.begin_run(stage.open().id, snapshot=True, whole=True)
            stage.intake.fail_run(run, "there is no column 'mass'", broken=True)
            assert stage.status.rejected() == 1
        stage.read([("a", "1")])
        assert stage.status.rejected() == 0

    # ------------------------------------------------------------------------------------------- what becomes pending

    def test_a_run_counts_its_changes(self, stage: IntakeStage) -> None:
        first = stage.read([("a", "1"), ("b", "2")], [("c", "3")], rejects=[(reject(9), None)])
        assert (first.records, first.created, first.updated, first.unchanged) == (3, 3, 0, 0)
        assert (first.removed, first.rejected, first.collided) == (0, 1, False)
        second = stage.read([("a", "1"), ("b", "2.0"), ("d", "4")], deletes="remove", whole=True, version=2)
        assert (second.records, second.created, second.updated, second.unchanged) == (3, 1, 1, 1)
        assert (second.removed, second.rejected) == (1, 0)
        assert second.id > first.id

    async def test_an_unchanged_batch_changes_nothing(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "2")])
        await stage.deliver_all()
        state = stage.open()
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
        rows = [("a", "1"), ("b", "2")]
        assert stage.intake.commit(run, entries=entries(rows), records=2, rejects=(), cursor={}, facts={}) == 0
        summary = stage.intake.finish_run(
            run, cursor={}, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="remove"
        )
        assert (summary.unchanged, summary.created + summary.updated + summary.removed) == (2, 0)
        assert stage.status.pending() == 0

    async def test_the_last_of_equal_keys_in_one_batch_wins(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "1"), ("a", "2"), ("a", "3")])
        assert await stage.deliver_all() == [("create", "a", "3"), ("create", "b", "1")]
        assert stage.open().repeats

    async def test_the_last_of_equal_keys_in_several_batches_wins_every_time(self, stage: IntakeStage) -> None:
        rows = [[("a", "1"), ("b", "1")], [("a", "2")], [("c", "1")], [("a", "3")]]
        stage.read(*rows)
        assert await stage.deliver_all() == [("create", "a", "3"), ("create", "b", "1"), ("create", "c", "1")]
        for version in (2, 3):
            summary = stage.read(*rows, version=version)
            if summary.collided:
                summary = stage.read(*rows, version=version, whole=True)
            assert await stage.deliver_all() == [], "nothing has changed, so no older value is sent to the service"
            assert stage.open().repeats

    async def test_vanished_rows_are_removed_if_configured(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "1")])
        await stage.deliver_all()
        stage.read([("a", "1")], deletes="keep", version=2, whole=True)
        assert await stage.deliver_all() == []
        stage.read([("b", "1")], deletes="remove", version=3, whole=True)
        assert await stage.deliver_all() == [("delete", "a", None)]
        stage.read([("a", "1"), ("b", "1")], deletes="remove", version=4, whole=True)
        assert await stage.deliver_all() == [("create", "a", "1")]

    async def test_an_empty_partition_removes_only_its_own_entries(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], name="p")
        stage.read([("b", "1")], name="q")
        await stage.deliver_all()
        stage.read([], name="p", deletes="remove", version=2, whole=True)
        assert await stage.deliver_all() == [("delete", "a", None)]

    async def test_a_partition_is_read_whole_if_differences_cannot_show_which_record_owns_a_key(
        self, stage: IntakeStage
    ) -> None:
        stage.read([("a", "1"), ("b", "1")])
        # The record of `a` is present and was not mapped because it is known; a new record names the same key.
        summary = stage.read([("a", "2")], unmapped_rows=[("a", "1"), ("b", "1")], whole=False, version=2)
        assert summary.collided
        assert stage.open().cursor is None, "no cursor is stored"
        rows = [("a", "2"), ("a", "1"), ("b", "1")]
        assert not stage.read(rows, whole=True, version=2).collided
        assert stage.open().repeats
        assert await stage.deliver_all() == [("create", "a", "1"), ("create", "b", "1")]

    def test_the_last_complete_run_is_known_after_a_run_with_a_collision(self, stage: IntakeStage) -> None:
        rows = [("a", "1"), ("b", "1")]
        stage.read(rows)
        idle = stage.read([], unmapped_rows=rows, whole=False, version=2)
        assert stage.read([("a", "2")], unmapped_rows=rows, whole=False, version=3).collided
        (pipeline,) = stage.status.pipelines()
        assert pipeline.last_run is not None
        assert pipeline.last_run.id == idle.id

    def test_a_partition_is_read_whole_if_it_takes_over_a_key_of_another_partition(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], name="p")
        stage.read([("b", "1")], name="q")
        assert stage.read([("a", "2")], unmapped_rows=[("b", "1")], name="q", whole=False, version=2).collided
        assert not stage.read([("a", "2"), ("b", "1")], name="q", whole=True, version=2).collided
        assert not stage.open("p").current, "another partition has changed entries of the pipeline since"

    # --------------------------------------------------------------------------------------------- rejected records

    def test_a_record_that_is_read_repeatedly_is_rejected_once(self, stage: IntakeStage) -> None:
        for version in (1, 2, 3):
            stage.read([("a", "1")], version=version, rejects=[(reject(3), None), (reject(4), 44)], whole=True)
            assert stage.status.rejected() == 2

    def test_a_rejected_record_that_a_whole_reading_no_longer_has_is_removed(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], rejects=[(reject(3), None), (reject(4), 44)])
        stage.read([("a", "1")], version=2, whole=True)
        assert stage.status.rejected() == 0

    def test_a_rejected_record_that_is_still_present_stays_rejected_without_mapping(self, stage: IntakeStage) -> None:
        bad = ("", "x")
        stage.read([("a", "1")], rejects=[(reject(4), row_hash(bad))], unmapped_rows=[bad])
        stage.read([], unmapped_rows=[("a", "1"), bad], version=2, whole=False)
        assert stage.status.rejected() == 1

    # ---------------------------------------------------------------------------------------------------- two owners

    async def test_a_key_that_two_pipelines_write_is_rejected_with_the_names_of_both(self, stage: IntakeStage) -> None:
        stage.intake.activate(["mass", "pdm"])
        stage.read([("a", "1")], pipeline="mass")
        summary = stage.read([("a", "2"), ("b", "2")], pipeline="pdm")
        assert (summary.created, summary.rejected) == (1, 1)
        assert await stage.deliver_all() == [("create", "a", "1"), ("create", "b", "2")]
        assert stage.status.rejected() == 1
        assert [origin.pipeline for origin in stage.status.origins("a")] == ["mass"]
        (sentence,) = self.conflicts(stage)
        assert sentence == (
            "Pipelines 'mass' and 'pdm' both write the key 'a' of this sink: 'mass' at p, row 2, 'pdm' at p, row 2. The value of "
            "'mass' is kept. Give one of the pipelines another key or sink."
        )

    async def test_a_key_has_the_value_of_another_pipeline_after_its_owner_is_removed(self, stage: IntakeStage) -> None:
        stage.intake.activate(["mass", "pdm"])
        stage.read([("a", "1")], pipeline="mass")
        stage.read([("a", "2")], pipeline="pdm")
        await stage.deliver_all()
        stage.restart()
        stage.intake.activate(["pdm"])
        assert stage.open(pipeline="pdm").current, "it need not be read again"
        assert await stage.deliver_all() == [("update", "a", "2")]
        assert stage.status.rejected() == 0

    def conflicts(self, stage: IntakeStage) -> list[str]:
        """Return the reasons of entries that another pipeline writes."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- acknowledgement

    async def test_a_partition_is_listed_as_delivered_until_its_acknowledgement_is_recorded(
        self, stage: IntakeStage
    ) -> None:
        stage.read([("a", "1"), ("b", "1")], version=5)
        assert stage.intake.acknowledged_partitions("pipe") == []
        await stage.deliver_all()
        identity = stage.open().id
        assert stage.intake.acknowledged_partitions("pipe") == [(identity, Partition(name="p"), {"version": 5})]
        assert stage.intake.acknowledged_partitions("other") == []
        stage.restart()
        assert stage.open().awaiting == {"version": 5}
        assert stage.intake.acknowledged_partitions("pipe") == [(identity, Partition(name="p"), {"version": 5})]
        stage.intake.acknowledge(identity, {"version": 5})
        assert stage.intake.acknowledged_partitions("pipe") == []
        assert stage.open().awaiting is None

    async def test_an_acknowledgement_of_an_older_reading_has_no_effect(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], version=1)
        await stage.deliver_all()
        stage.read([("a", "1"), ("b", "1")], version=2, whole=True)
        identity = stage.open().id
        stage.intake.acknowledge(identity, {"version": 1})
        await stage.deliver_all()
        assert stage.intake.acknowledged_partitions("pipe") == [(identity, Partition(name="p"), {"version": 2})]

    def test_a_partition_without_changes_is_delivered_immediately(self, stage: IntakeStage) -> None:
        stage.read([], rejects=[(reject(2), None)])
        assert [one.name for _, one, _ in stage.intake.acknowledged_partitions("pipe")] == ["p"]

    async def test_a_partition_waits_for_an_equal_value_that_is_pending_for_another_partition(
        self, stage: IntakeStage
    ) -> None:
        stage.read([("a", "1")], name="p")
        stage.read([("a", "1")], name="q")
        assert stage.intake.acknowledged_partitions("pipe") == []
        await stage.deliver_all()
        assert sorted(one.name for _, one, _ in stage.intake.acknowledged_partitions("pipe")) == ["p", "q"]

    async def test_the_result_of_a_reading_lists_its_rejections_in_order(self, stage: IntakeStage) -> None:
        stage.intake.activate(["other", "pipe"])
        stage.read([("c", "1")], pipeline="other", name="o")
        bad = [(reject(10), None), (reject(9, "It is empty."), 44)]
        stage.read([("a", "1"), ("b", "1"), ("c", "2")], rejects=bad)
        (lane,) = await stage.deliverable.lanes()
        while (claim := await stage.deliverable.claim(lane.id, max_items=100, max_bytes=100_000)) is not None:
            kept = [key for _, key, _ in work(claim) if key != "b"]
            refused = [
                RejectedEntry(key=key, reason="Too heavy.", status=422) for _, key, _ in work(claim) if key == "b"
            ]
            await stage.deliverable.acknowledge_some(claim, delivered=kept, rejected=refused)
            await stage.deliverable.release(claim)
        stage.restart()
        ((identity, _, _),) = stage.intake.acknowledged_partitions("pipe")
        result = stage.intake.acknowledgement(identity)
        assert (result.pipeline, result.sink, result.digest) == ("pipe", str(SINK), "d")
        assert (result.records, result.created, result.updated, result.unchanged, result.removed) == (3, 2, 0, 0, 0)
        assert (result.rejected, result.refused) == (4, 2)
        assert result.started <= result.ended
        assert result.facts == {"file.name": "p"}
        rejected = list(result.rejects())
        assert [(one.subject, one.position, one.key) for one in rejected] == [
            ("entry", 3, "b"), ("conflict", 4, "c"), ("record", 9, ""), ("record", 10, ""),
        ]  # fmt: skip
        assert [(one.reason, one.status) for one in rejected if one.subject != "conflict"] == [
            ("Too heavy.", 422), ("It is empty.", None), ("It is no number.", None),
        ]  # fmt: skip
        assert rejected[2].record == {"mass": "x"}
        assert {one.facts["file.name"] for one in rejected} == {"p"}
        assert len({one.reference for one in rejected}) == 4

    def test_rejected_records_that_an_amendment_corrects_are_removed(self, stage: IntakeStage) -> None:
        stage.read([("a", "1")], rejects=[(reject(3), None), (reject(4), 44)])
        references = self.references(stage)
        number, _, sign = references[1].partition("-")
        forged = [
            f"{number}-{(int(sign, 16) + 1) % 65536:04x}",
            "0-0000",
            "0" + references[1],
            "٣-0000",
            "word",
            "9" * 30,
            "",
        ]
        run = self.amend(stage, "fix", [("b", "2")], resolved=[references[0], *forged])
        assert run.created == 1
        assert self.references(stage) == references[1:]
        self.amend(stage, "elsewhere", [("c", "2")], resolved=references, pipeline="other")
        assert self.references(stage) == references[1:], "another pipeline cannot correct them"

    async def test_an_amendment_removes_no_entries_of_other_records(self, stage: IntakeStage) -> None:
        rows = [("a", "1"), ("b", "1")]
        stage.read(rows, rejects=[(reject(4), None)])
        await stage.deliver_all()
        summary = self.amend(stage, "p", [("c", "1")], deletes="remove")
        assert (summary.removed, summary.collided) == (0, False)
        assert len(self.references(stage)) == 1, "the rejected record of the amended file is kept"
        assert await stage.deliver_all() == [("create", "c", "1")]
        stage.read([*rows, ("c", "1")], version=3, whole=True, deletes="remove")
        assert await stage.deliver_all() == []

    async def test_an_amendment_replaces_its_own_rejected_records(self, stage: IntakeStage) -> None:
        self.amend(stage, "fix", [("a", "1")], rejects=[(reject(3), None), (reject(4), 44)])
        assert len(self.references(stage, "fix")) == 2
        self.amend(stage, "fix", [("a", "1"), ("b", "1")], rejects=[(reject(4), 44)], version=2)
        assert [one.position for one in self.rejected(stage, "fix")] == [4]

    def amend(
        self,
        stage: IntakeStage,
        name: str,
        rows: Sequence[Row],
        *,
        pipeline: str = "pipe",
        rejects: Sequence[tuple[Reject, int | None]] = (),
        resolved: Sequence[str] = (),
        deletes: Deletes = "keep",
        version: int = 1,
    ) -> RunSummary:
        """Read a partial snapshot."""
        state = stage.open(name, pipeline=pipeline)
        run = stage.intake.begin_run(state.id, snapshot=True, whole=state.snapshot is None)
        stage.intake.commit(
            run, entries=entries(rows), records=len(rows), rejects=rejects, cursor={"amended": version}, facts={},
            resolved=resolved,
        )  # fmt: skip
        return stage.intake.finish_run(run, cursor={"amended": version}, seen=None, deletes=deletes, partial=True)

    def test_a_partial_reading_of_equal_entries_lets_the_next_one_map_every_record(self, stage: IntakeStage) -> None:
        """Otherwise a record that has its former text again, which no partial reading saw, would remove its entry."""
        stage.read([("a", "1")])
        state = stage.open("p")
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
        other = entries([("a", "1")]).with_columns(row_hash=pl.lit(77, dtype=pl.UInt64))
        stage.intake.commit(run, entries=other, records=1, rejects=(), cursor={"changes": 1}, facts={})
        stage.intake.finish_run(run, cursor={"changes": 1}, seen=None, deletes="keep", partial=True)
        assert stage.open("p").snapshot is None
        assert stage.read([("a", "1")], deletes="remove").removed == 0

    def rejected(self, stage: IntakeStage, name: str = "p") -> list[Rejected]:
        return list(stage.intake.acknowledgement(stage.open(name).id).rejects())

    def references(self, stage: IntakeStage, name: str = "p") -> list[str]:
        return [one.reference for one in self.rejected(stage, name)]

    async def test_a_claim_in_flight_during_a_crash_is_pending_after_a_restart(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "1")])
        (lane,) = await stage.deliverable.lanes()
        claim = await stage.deliverable.claim(lane.id, max_items=100, max_bytes=100_000)
        assert claim is not None
        await stage.deliverable.acknowledge_some(claim, delivered=["a"])
        stage.restart()
        assert await stage.deliver_all() == [("create", "b", "1")]

    # --------------------------------------------------------------------------------------------- origin of entries

    async def test_an_entry_has_its_pipeline_file_and_location(self, stage: IntakeStage) -> None:
        cursor: Cursor = {"version": 1}
        state = stage.open("drop/a.csv")
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
        rows = [("a", "1"), ("b", "2")]
        facts = {"file.name": "a.csv", "file.owner": "bench"}
        stage.intake.commit(run, entries=entries(rows), records=2, rejects=(), cursor=cursor, facts=facts)
        stage.intake.finish_run(run, cursor=cursor, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="keep")
        (origin,) = stage.status.origins("b")
        assert (origin.workspace, origin.sink, origin.value, origin.data_type) == (
            SINK.workspace,
            SINK.name,
            "2",
            "scalar",
        )
        assert (origin.pipeline, origin.partition, origin.position) == ("pipe", "drop/a.csv", 3)
        assert (origin.pending, origin.removed, dict(origin.facts)) == (True, False, facts)
        await stage.deliver_all()
        (origin,) = stage.status.origins("b")
        assert not origin.pending
        assert stage.status.origins("c") == []
