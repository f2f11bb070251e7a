"""The promises of every mirror about entries that an earlier pipeline, mapping or state file wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ingestd.core.record import Deletes, Partition
from ingestd.mirror.port import RejectedEntry, Snapshot
from ingestd.mirror.row_hashes import RowHashes
from tests.contract.mirror_deliverable import SINK, held
from tests.contract.mirror_drift import DriftStage, rows
from tests.contract.mirror_intake import IntakeStage, Row, hashes
from tests.contract.mirror_intake import entries as mapped


class OwnershipStage(DriftStage, IntakeStage):
    """A mirror with all its sides."""

    def read_as(
        self,
        entries: Sequence[Row],
        *,
        records: Sequence[Row] | None = None,
        pipeline: str = "pipe",
        name: str = "p",
        digest: str = "d",
        deletes: Deletes = "remove",
        version: int = 1,
    ) -> None:
        """Read a whole snapshot; ``records``: the rows of the hashes if they differ from the entries."""
        partition = Partition(name=name, deletes=deletes)
        state = self.intake.open_partition(pipeline, partition, SINK, digest)
        run = self.intake.begin_run(state.id, snapshot=True, whole=state.snapshot is None)
        present = hashes(records or entries)
        frame = mapped(entries)
        if records is not None:
            frame = frame.with_columns(row_hash=mapped(records)["row_hash"])
        cursor = {"version": version}
        self.intake.commit(run, entries=frame, records=len(entries), rejects=(), cursor=cursor, facts={})
        self.intake.finish_run(run, cursor=cursor, seen=Snapshot(hashes=RowHashes.of(present)), deletes=deletes)

    async def sync_from(self, source: str, *entries: Row) -> None:
        """Configure another source for the pipeline, read it, and deliver."""
        self.intake.activate(["pipe"], sources={"pipe": source})
        self.read_as(entries, name=source)
        await self.deliver_all()

    def unexplained(self) -> list[tuple[str, str]]:
        """Return key and reason of all unexplained entries."""
        page = self.reader.unexplained(("pipe", "desires", "new", "old"), limit=99)
        return [(one.key, one.why) for one in page.entries]

    async def lane(self) -> int:
        (lane,) = await self.deliverable.lanes()
        return lane.id


class OwnershipSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> OwnershipStage:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ a changed key template

    RECORDS = (("1", "10"), ("2", "20"))
    BEFORE = (("1.mass", "10"), ("2.mass", "20"))
    AFTER = (("1.weight", "10"), ("2.weight", "20"))

    async def test_keys_of_the_previous_mapping_are_removed_although_their_records_exist(
        self, stage: OwnershipStage
    ) -> None:
        stage.read_as(self.BEFORE, records=self.RECORDS)
        await stage.deliver_all()
        stage.read_as(self.AFTER, records=self.RECORDS, digest="new")
        assert await stage.deliver_all() == [
            ("create", "1.weight", "10"), ("create", "2.weight", "20"), ("delete", "1.mass", None), ("delete", "2.mass", None),
        ]  # fmt: skip
        stage.read_as(self.AFTER[:1], records=self.RECORDS[:1], digest="new", version=2)
        assert await stage.deliver_all() == [("delete", "2.weight", None)]

    async def test_a_key_of_both_mappings_is_kept(self, stage: OwnershipStage) -> None:
        stage.read_as(self.BEFORE, records=self.RECORDS)
        await stage.deliver_all()
        stage.read_as((self.BEFORE[0], self.AFTER[1]), records=self.RECORDS, digest="new")
        assert await stage.deliver_all() == [("create", "2.weight", "20"), ("delete", "2.mass", None)]

    async def test_an_unfinished_reading_with_a_new_mapping_removes_nothing_and_the_next_one_does(
        self, stage: OwnershipStage
    ) -> None:
        stage.read_as(self.BEFORE, records=self.RECORDS)
        await stage.deliver_all()
        state = stage.open(digest="new")
        run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
        stage.intake.commit(run, entries=mapped(self.AFTER[:1]), records=1, rejects=(), cursor={}, facts={})
        stage.restart()
        assert await stage.deliver_all() == []
        stage.read_as(self.AFTER, records=self.RECORDS, digest="new")
        assert [key for kind, key, _ in await stage.deliver_all() if kind == "delete"] == ["1.mass", "2.mass"]

    async def test_keys_of_a_mapping_that_was_replaced_twice_before_a_reading_are_removed(
        self, stage: OwnershipStage
    ) -> None:
        stage.read_as(self.BEFORE, records=self.RECORDS)
        await stage.deliver_all()
        stage.open(digest="second")
        stage.restart()
        stage.read_as(self.AFTER, records=self.RECORDS, digest="third")
        assert [key for kind, key, _ in await stage.deliver_all() if kind == "delete"] == ["1.mass", "2.mass"]

    # ------------------------------------------------------------------------------------------------ another pipeline

    async def test_a_renamed_pipeline_keeps_its_state(self, stage: OwnershipStage) -> None:
        assert stage.intake.activate(["old"], sources={"old": "budget"}) == []
        stage.read_as([("a", "1"), ("b", "2")], pipeline="old")
        await stage.deliver_all()
        stage.restart()
        assert stage.intake.activate(["new"], sources={"new": "budget"}) == [("old", "new")]
        assert stage.open(pipeline="new").cursor == {"version": 1}
        stage.read_as([("a", "1")], pipeline="new", version=2)
        assert await stage.deliver_all() == [("delete", "b", None)]
        stage.restart()
        assert stage.intake.activate(["new"], sources={"new": "budget"}) == []

    async def test_pipelines_exchange_their_names(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["a", "b", "c"], sources={"a": "x", "b": "y", "c": "z"})
        for pipeline, key in (("a", "1"), ("b", "2"), ("c", "3")):
            stage.read_as([(key, "1")], pipeline=pipeline)
        await stage.deliver_all()
        stage.restart()
        renamed = stage.intake.activate(["a", "b", "c"], sources={"a": "y", "b": "z", "c": "x"})
        assert sorted(renamed) == [("a", "c"), ("b", "a"), ("c", "b")]
        assert stage.intake.activate(["a", "b", "c"], sources={"a": "y", "b": "z", "c": "x"}) == []
        for pipeline, key in (("c", "1"), ("a", "2"), ("b", "3")):
            assert stage.open(pipeline=pipeline).cursor == {"version": 1}
            stage.read_as([(key, "2")], pipeline=pipeline, version=2)
        assert sorted(await stage.deliver_all()) == [("update", key, "2") for key in "123"]

    async def test_a_state_follows_its_source_to_a_new_name_when_its_pipeline_gets_another_source(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["a"], sources={"a": "x"})
        stage.read_as([("1", "1")], pipeline="a")
        await stage.deliver_all()
        assert stage.intake.activate(["a", "b"], sources={"a": "y", "b": "x"}) == [("a", "b")]
        assert stage.open(pipeline="b").cursor == {"version": 1}
        stage.read_as([("1", "2")], pipeline="b", version=2)
        stage.read_as([("9", "9")], pipeline="a")
        assert sorted(await stage.deliver_all()) == [("create", "9", "9"), ("update", "1", "2")]

    async def test_a_pipeline_keeps_its_state_although_it_got_the_source_of_a_removed_one(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["a", "b"], sources={"a": "x", "b": "y"})
        for pipeline, key in (("a", "1"), ("b", "2")):
            stage.read_as([(key, "1")], pipeline=pipeline)
        await stage.deliver_all()
        assert stage.intake.activate(["b"], sources={"b": "x"}) == []

    async def test_a_pipeline_with_another_source_does_not_inherit_the_state_of_a_removed_one(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["old"], sources={"old": "budget"})
        stage.read_as([("a", "1")], pipeline="old")
        await stage.deliver_all()
        assert stage.intake.activate(["new"], sources={"new": "masses"}) == []
        stage.read_as([("b", "1")], pipeline="new")
        assert await stage.deliver_all() == [("create", "b", "1")]

    def test_an_ambiguous_rename_is_not_assumed(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["a", "b"], sources={"a": "budget", "b": "budget"})
        stage.read_as([("a", "1")], pipeline="a")
        stage.read_as([("b", "1")], pipeline="b", name="q")
        assert stage.intake.activate(["c"], sources={"c": "budget"}) == []
        assert stage.intake.activate(["c", "d"], sources={"c": "budget", "d": "budget"}) == []

    async def test_an_equal_entry_of_a_removed_pipeline_passes_to_the_pipeline_that_names_it(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["old"])
        stage.read_as([("a", "1"), ("b", "2")], pipeline="old", name="o")
        await stage.deliver_all()
        stage.intake.activate(["new"])
        stage.read_as([("a", "1"), ("b", "2")], pipeline="new")
        assert await stage.deliver_all() == [], "nothing differs"
        stage.read_as([("a", "1")], pipeline="new", version=2)
        assert await stage.deliver_all() == [("delete", "b", None)]

    # ------------------------------------------------------------------------------------------- several names of one key

    @pytest.mark.parametrize("saved_first", ["from", "to"])
    async def test_a_record_that_moves_to_the_file_of_another_pipeline_keeps_its_entry(
        self, stage: OwnershipStage, saved_first: str
    ) -> None:
        stage.intake.activate(["from", "to"])
        stage.read_as([("a", "1"), ("b", "1")], pipeline="from")
        stage.read_as([("c", "1")], pipeline="to")
        await stage.deliver_all()
        after = {"from": [("b", "1")], "to": [("a", "1"), ("c", "1")]}
        for pipeline in sorted(after, key=lambda name: name != saved_first):
            stage.read_as(after[pipeline], pipeline=pipeline, version=2)
        assert [key for kind, key, _ in await stage.deliver_all() if kind == "delete"] == []
        assert [origin.pipeline for origin in stage.status.origins("a")] == ["to"]
        assert stage.status.rejected() == 0
        stage.read_as([("c", "1")], pipeline="to", version=3)
        assert await stage.deliver_all() == [("delete", "a", None)], "the last one to name it removes it"

    async def test_an_entry_gets_the_value_of_the_pipeline_that_still_names_it(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["one", "two", "three"])
        for pipeline, value in (("one", "1"), ("two", "2"), ("three", "3")):
            stage.read_as([("a", value), (pipeline, "1")], pipeline=pipeline)
        await stage.deliver_all()
        assert stage.status.rejected() == 2
        stage.read_as([("one", "1")], pipeline="one", version=2)
        assert await stage.deliver_all() == [("update", "a", "3")]
        (one,) = stage.status.rejections(limit=9)
        assert one.pipeline == "two"
        assert "The value of 'three' is kept." in one.reason

    async def test_an_entry_stays_with_its_pipeline_if_another_partition_of_it_names_the_key(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["one", "two"])
        stage.read_as([("a", "1")], pipeline="one", name="p")
        stage.read_as([("a", "2"), ("q", "1")], pipeline="one", name="q")
        stage.read_as([("a", "3")], pipeline="two")
        await stage.deliver_all()
        stage.read_as([("q", "1")], pipeline="one", name="q", version=2)
        assert await stage.deliver_all() == [("update", "a", "1")]
        assert [one.pipeline for one in stage.status.rejections(limit=9)] == ["two"]

    async def test_partitions_of_a_pipeline_that_gets_the_key_do_not_conflict(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["one", "two"])
        stage.read_as([("a", "1"), ("b", "1")], pipeline="one")
        stage.read_as([("a", "2")], pipeline="two", name="p")
        stage.read_as([("a", "3")], pipeline="two", name="q")
        assert stage.status.rejected() == 2
        stage.read_as([("b", "1")], pipeline="one", version=2)
        assert stage.status.rejected() == 0
        assert ("create", "a", "3") in await stage.deliver_all()

    async def test_a_later_name_of_a_pipeline_that_does_not_own_the_key_is_what_the_entry_becomes(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["one", "two"])
        stage.read_as([("a", "1"), ("b", "1")], pipeline="one")
        stage.read_as([("a", "2")], pipeline="two")
        stage.read_as([("a", "3")], pipeline="two", version=2)
        stage.read_as([("b", "1")], pipeline="one", version=2)
        assert ("create", "a", "3") in await stage.deliver_all()
        stage.restart()
        stage.intake.activate(["one", "two"])
        stage.read_as([("c", "1")], pipeline="two", version=3)
        assert await stage.deliver_all() == [("create", "c", "1"), ("delete", "a", None)]

    async def test_a_name_that_its_pipeline_withdrew_keeps_no_entry(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["one", "two"])
        stage.read_as([("a", "1"), ("b", "1")], pipeline="one")
        stage.read_as([("a", "1"), ("c", "1")], pipeline="two")
        stage.read_as([("c", "1")], pipeline="two", version=2)
        assert stage.status.rejected() == 0
        await stage.deliver_all()
        stage.read_as([("b", "1")], pipeline="one", version=2)
        assert await stage.deliver_all() == [("delete", "a", None)]

    @pytest.mark.parametrize("value", ["1", "2"])
    async def test_an_entry_that_two_partitions_of_a_pipeline_name_stays_until_both_are_without_it(
        self, stage: OwnershipStage, value: str
    ) -> None:
        stage.read_as([("a", "1"), ("p", "1")], name="p")
        stage.read_as([("a", value), ("q", "1")], name="q")
        await stage.deliver_all()
        stage.read_as([("q", "1")], name="q", version=2)
        assert await stage.deliver_all() == ([("update", "a", "1")] if value == "2" else [])
        stage.read_as([("p", "1")], name="p", version=2)
        assert await stage.deliver_all() == [("delete", "a", None)]

    @pytest.mark.parametrize("restarts", [False, True])
    async def test_a_pipeline_takes_over_the_source_of_another_one_that_reads_something_else_now(
        self, stage: OwnershipStage, restarts: bool
    ) -> None:
        stage.intake.activate(["one", "two"], sources={"one": "x", "two": "y"})
        stage.read_as([("a", "1"), ("b", "1")], pipeline="one", name="x")
        stage.read_as([("c", "1")], pipeline="two", name="y")
        await stage.deliver_all()
        if restarts:
            stage.restart()
        stage.intake.activate(["one", "two"], sources={"one": "z", "two": "x"})
        stage.read_as([("a", "2"), ("b", "1")], pipeline="two", name="x")
        stage.read_as([("d", "1")], pipeline="one", name="z")
        assert stage.status.rejected() == 0
        assert await stage.deliver_all() == [("create", "d", "1"), ("update", "a", "2")]
        stage.read_as([("b", "3")], pipeline="two", name="x", version=2)
        assert await stage.deliver_all() == [("delete", "a", None), ("update", "b", "3")]

    async def test_a_conflict_ends_when_the_other_pipeline_reads_something_else(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["one", "two"], sources={"one": "x", "two": "y"})
        stage.read_as([("a", "1")], pipeline="one", name="x")
        stage.read_as([("a", "2")], pipeline="two", name="y")
        await stage.deliver_all()
        stage.intake.activate(["one", "two"], sources={"one": "z", "two": "y"})
        assert await stage.deliver_all() == [("update", "a", "2")], "without another reading"
        assert stage.status.rejected() == 0
        assert stage.open("x", pipeline="one").cursor is None, "it is read from its start if it is configured again"

    async def test_a_conflict_names_the_renamed_pipeline(self, stage: OwnershipStage) -> None:
        stage.intake.activate(["one", "two"], sources={"one": "x", "two": "y"})
        stage.read_as([("a", "1")], pipeline="one", name="x")
        stage.read_as([("a", "2")], pipeline="two", name="y")
        assert stage.intake.activate(["1", "two"], sources={"1": "x", "two": "y"}) == [("one", "1")]
        (one,) = stage.status.rejections(limit=9)
        assert "The value of '1' is kept." in one.reason

    async def test_an_entry_that_the_service_refused_is_sent_again_for_its_new_owner(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["one", "two"])
        stage.read_as([("a", "1")], pipeline="one")
        stage.read_as([("a", "1")], pipeline="two")
        lane = await stage.lane()
        claim = await stage.deliverable.claim(lane, max_items=9, max_bytes=9_999)
        assert claim is not None
        refused = RejectedEntry(key="a", reason="Too heavy.", status=422)
        await stage.deliverable.acknowledge_some(claim, delivered=[], rejected=[refused])
        await stage.deliverable.release(claim)
        stage.read_as([("b", "1")], pipeline="one", version=2)
        assert await stage.deliver_all() == [("create", "b", "1"), ("update", "a", "1")]
        assert stage.status.rejected() == 0

    async def test_an_entry_that_another_program_removed_is_sent_again_for_its_new_owner(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["old"])
        stage.read_as([("a", "1")], pipeline="old", name="o")
        await stage.deliver_all()
        assert (await stage.check(await stage.lane())).removed == 1
        stage.intake.activate(["new"])
        stage.read_as([("a", "1")], pipeline="new")
        assert await stage.deliver_all() == [("update", "a", "1")]

    # ------------------------------------------------------------------------------------------------ unexplained entries

    async def test_an_entry_found_in_the_service_is_unexplained_until_a_source_names_it(
        self, stage: OwnershipStage
    ) -> None:
        lane = stage.desire({"a": ("1", "scalar")})
        await stage.deliverable.adopt(lane, held(*rows(a="1", b="2", c="3")))
        await stage.deliver(lane)
        assert stage.unexplained() == [("b", "found"), ("c", "found")]
        assert (await stage.check(lane, *rows(a="1", b="2", c="3"))).unexplained == 2
        stage.desire({"b": ("2", "scalar")})
        assert stage.unexplained() == [("c", "found")]

    async def test_entries_of_a_removed_pipeline_are_unexplained_and_listed_with_its_name(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["old", "new"])
        stage.read_as([("a", "1")], pipeline="old", name="o")
        stage.read_as([("b", "1")], pipeline="new", name="n")
        await stage.deliver_all()
        assert stage.unexplained() == []
        stage.intake.activate(["new"])
        assert stage.unexplained() == [("a", "inactive")]
        (one,) = stage.reader.unexplained(["new"], limit=9).entries
        assert (one.key, one.value, one.pipeline) == ("a", "1", "old")

    async def test_keys_of_the_previous_mapping_are_unexplained_if_vanished_rows_are_kept(
        self, stage: OwnershipStage
    ) -> None:
        stage.read_as(self.BEFORE, records=self.RECORDS, deletes="keep")
        await stage.deliver_all()
        stage.read_as(self.AFTER, records=self.RECORDS, digest="new", deletes="keep")
        await stage.deliver_all()
        assert [key for key, _ in stage.unexplained()] == ["1.mass", "2.mass"]

    async def test_entries_of_the_previous_source_are_unexplained_once_the_new_partitions_are_read_whole(
        self, stage: OwnershipStage
    ) -> None:
        stage.intake.activate(["pipe"], sources={"pipe": "old table"})
        stage.read_as([("a", "1")], name="old")
        await stage.deliver_all()
        stage.intake.activate(["pipe"], sources={"pipe": "new table"})
        stage.read_as([("b", "1")], name="new")
        assert stage.unexplained() == []
        stage.intake.note_pass("pipe", began=5.0, whole=True)
        assert stage.unexplained() == [("a", "retired")]
        stage.open("old")
        assert stage.unexplained() == []

    @pytest.mark.parametrize("value", ["1", "2"])
    async def test_a_source_that_is_configured_again_is_read_whole_if_another_one_took_its_entries(
        self, stage: OwnershipStage, value: str
    ) -> None:
        await stage.sync_from("table", ("a", "1"))
        await stage.sync_from("query", ("a", value))
        stage.intake.activate(["pipe"], sources={"pipe": "table"})
        state = stage.open("table")
        assert (state.cursor, state.current) == (None, False)

    async def test_a_source_that_is_configured_again_continues_if_it_has_its_entries(
        self, stage: OwnershipStage
    ) -> None:
        await stage.sync_from("table", ("a", "1"))
        await stage.sync_from("query", ("b", "1"))
        stage.intake.activate(["pipe"], sources={"pipe": "table"})
        assert stage.open("table").cursor == {"version": 1}

    async def test_unexplained_entries_are_paged(self, stage: OwnershipStage) -> None:
        lane = stage.desire({"a": ("1", "scalar")})
        await stage.deliverable.adopt(lane, held(*rows(b="2", c="3", d="4")))
        first = stage.reader.unexplained(("desires",), limit=2)
        assert [one.key for one in first.entries] == ["b", "c"]
        assert first.next is not None
        assert [one.key for one in stage.reader.unexplained(("desires",), after=first.next, limit=2).entries] == ["d"]
        assert stage.reader.unexplained(("another",), limit=9).entries == ()

    async def test_entries_of_the_previous_source_are_removed_as_own_entries(self, stage: OwnershipStage) -> None:
        await stage.sync_from("old table", ("a", "1"), ("b", "2"))
        await stage.sync_from("new table", ("b", "2"), ("c", "3"))
        stage.intake.note_pass("pipe", began=5.0, whole=True)
        status = await stage.check(await stage.lane(), *rows(a="1", b="2", c="3"), unexplained="own")
        assert (status.swept, status.unexplained) == (1, 0)
        assert await stage.deliver_all() == [("delete", "a", None)]

    async def test_a_source_that_is_configured_again_is_read_whole_if_its_entries_were_removed(
        self, stage: OwnershipStage
    ) -> None:
        await stage.sync_from("old table", ("a", "1"))
        await stage.sync_from("new table", ("b", "1"))
        stage.intake.note_pass("pipe", began=5.0, whole=True)
        assert (await stage.check(await stage.lane(), *rows(a="1", b="1"), unexplained="own")).swept == 1
        stage.intake.activate(["pipe"], sources={"pipe": "old table"})
        state = stage.open("old table")
        assert (state.cursor, state.current) == (None, False)
