"""The promises of every mirror to the comparison of a sink with it (`ingestd.mirror.drift`)."""

from __future__ import annotations

from abc import abstractmethod

import pytest

from ingestd.mirror.drift import START, DriftStatus, RemoveUnexplained
from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from tests.contract.mirror_deliverable import held, items, scalars
from tests.contract.mirror_rejections import RejectionStage

PIPELINES = ("desires",)
Row = tuple[str, str | None, str]


class DriftStage(RejectionStage):
    """A mirror with one sink that can be read back."""

    @property
    @abstractmethod
    def reader(self) -> Observer: ...

    @property
    @abstractmethod
    def checker(self) -> DriftStore: ...

    async def check(self, lane: int, *service: Row, unexplained: RemoveUnexplained = "keep") -> DriftStatus:
        """Run a whole check during which nothing else happens."""
        check = await self.checker.begin_check(lane)
        await self.checker.show(check, held(*service))
        return await self.checker.end_check(check, unexplained=unexplained)

    def found(self) -> list[tuple[str, str, str | None, str | None]]:
        """Return kind, key, wanted and found value of each finding."""
        page = self.reader.drift(PIPELINES, limit=100)
        return sorted((one.what, one.key, one.wanted, one.found) for one in page.findings)


def rows(**values: str) -> list[Row]:
    return [(key, value, "scalar") for key, value in values.items()]


class DriftSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> DriftStage:
        raise NotImplementedError

    async def test_a_sink_with_exactly_the_delivered_entries_has_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        await stage.deliver(lane)
        status = await stage.check(lane, *rows(a="1", b="2"))
        assert (status.entries, status.found, status.failure) == (2, 0, "")
        assert stage.found() == []
        assert [one for _, one in stage.reader.drift_checks(PIPELINES)] == [status]

    async def test_entries_that_another_program_added_changed_or_removed_are_reported_with_both_values(
        self, stage: DriftStage
    ) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3", d="4"))
        await stage.deliver(lane)
        status = await stage.check(lane, *rows(a="1.0", b="2", x="9"), ("d", "4", "text"))
        assert (status.added, status.changed, status.removed) == (1, 2, 1)
        assert stage.found() == [
            ("added", "x", None, "9"), ("changed", "a", "1", "1.0"), ("changed", "d", "4", "4"), ("removed", "c", "3", None),
        ]  # fmt: skip

    async def test_a_missing_data_type_in_the_service_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        frame = held(("a", "1", "")).with_columns(data_type=None)
        check = await stage.checker.begin_check(lane)
        await stage.checker.show(check, frame)
        assert (await stage.checker.end_check(check)).found == 0

    async def test_entries_pending_or_in_flight_at_the_start_of_a_check_are_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        stage.desire(scalars(a="2", new="1"))
        claim = await stage.claim(lane)
        stage.desire(scalars(b="2"))
        assert (await stage.check(lane, *rows(a="1", b="elsewhere"))).found == 0
        await stage.deliverable.acknowledge(claim)

    async def test_an_entry_that_is_delivered_during_a_check_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        stage.desire(scalars(a="2", b="2"))
        claim = await stage.claim(lane)
        check = await stage.checker.begin_check(lane)
        await stage.checker.show(check, held(*rows(a="1", b="1")))
        await stage.deliverable.acknowledge_some(claim, delivered=["a"])
        await stage.deliverable.acknowledge(claim)
        assert (await stage.checker.end_check(check)).found == 0

    async def test_an_entry_written_between_reading_and_comparing_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        check = await stage.checker.begin_check(lane)
        await stage.checker.show(check, held(*rows(a="1")))
        stage.desire(scalars(a="2", b="1"))
        await stage.deliver(lane)
        assert (await stage.checker.end_check(check)).found == 0

    @pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "whole"])
    async def test_an_entry_removed_between_reading_and_comparing_is_no_drift(
        self, stage: DriftStage, one_by_one: bool
    ) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        check = await stage.checker.begin_check(lane)
        await stage.checker.show(check, held(*rows(a="1", b="1")))
        stage.desire({"a": None})
        claim = await stage.claim(lane)
        if one_by_one:
            await stage.deliverable.acknowledge_some(claim, delivered=["a"])
        await stage.deliverable.acknowledge(claim)
        assert (await stage.checker.end_check(check)).found == 0
        assert (await stage.check(lane, *rows(a="1", b="1"))).added == 1, "another program has added it since"

    async def test_a_rejected_or_dropped_entry_that_the_service_lacks_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1", c="1"))
        await stage.refuse(lane, "a", "b")
        assert (await stage.check(lane, *rows(c="1"))).found == 0
        await stage.keeper.drop(Selection(key="b"))
        assert (await stage.check(lane, *rows(c="1"))).found == 0
        await stage.keeper.retry(Selection(key="a"))
        await stage.deliver(lane)
        assert (await stage.check(lane, *rows(c="1"))).removed == 1

    async def test_a_rejected_removal_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        stage.desire({"a": None})
        await stage.refuse(lane, "a")
        assert (await stage.check(lane, *rows(a="1"))).found == 0
        await stage.keeper.drop(Selection())
        assert (await stage.check(lane, *rows(a="1"))).found == 0

    async def test_a_foreign_entry_is_no_drift_and_its_last_seen_value_is_remembered(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliverable.adopt(lane, held(*rows(theirs="1", other="1")))
        await stage.deliver(lane)
        assert (await stage.check(lane, *rows(a="1", theirs="2"))).found == 0
        stage.desire(scalars(theirs="1", other="1"))
        sent = await stage.deliver(lane)
        assert [(key, value) for _, key, value in sent] == [("other", "1"), ("theirs", "1")], (
            "the last value that was found counts"
        )

    async def test_unexplained_entries_are_counted_and_listed_and_removed_only_on_request(
        self, stage: DriftStage
    ) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliverable.adopt(lane, held(*rows(a="1", theirs="1", other="1")))
        await stage.deliver(lane)
        service = rows(a="1", theirs="1", other="1")
        for asked in ("keep", "own"):
            status = await stage.check(lane, *service, unexplained=asked)
            assert (status.found, status.unexplained, status.swept) == (0, 2, 0)
        page = stage.reader.unexplained(PIPELINES, limit=9)
        assert [(one.key, one.value, one.pipeline, one.why) for one in page.entries] == [
            ("other", "1", "", "found"), ("theirs", "1", "", "found"),
        ]  # fmt: skip
        status = await stage.check(lane, *service, unexplained="remove")
        assert (status.unexplained, status.swept) == (0, 2)
        assert await stage.deliver(lane) == [("delete", "other", None), ("delete", "theirs", None)]
        assert (await stage.check(lane, *rows(a="1"))).found == 0
        assert stage.reader.unexplained(PIPELINES, limit=9).entries == ()

    async def test_a_finding_keeps_its_first_time_and_disappears_when_it_is_corrected(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="2", b="2"))
        first = {one.key: one.since for one in stage.reader.drift(PIPELINES, limit=9).findings}
        await stage.check(lane, *rows(a="2", b="3"))
        second = {one.key: one.since for one in stage.reader.drift(PIPELINES, limit=9).findings}
        assert second["a"] == first["a"]
        assert second["b"] > first["b"], "it is another value"
        await stage.check(lane, *rows(a="1", b="1"))
        assert stage.found() == []

    async def test_findings_are_paged(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="1", k1="1", k2="1", k3="1"))
        keys, after = [], START
        while True:
            page = stage.reader.drift(PIPELINES, after=after, limit=2)
            keys += [one.key for one in page.findings]
            if page.next is None:
                break
            after = page.next
        assert keys == ["k1", "k2", "k3"]
        assert stage.reader.drift(["another"], limit=9).findings == ()

    async def test_an_aborted_check_keeps_earlier_findings_and_reports_the_reason(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        before = await stage.check(lane, *rows(a="2"))
        check = await stage.checker.begin_check(lane)
        await stage.checker.abandon_check(check, "The service is away.")
        ((_, status),) = stage.reader.drift_checks(PIPELINES)
        assert (status.failure, status.at, status.changed) == ("The service is away.", before.at, 1)
        assert stage.found() == [("changed", "a", "1", "2")]

    async def test_a_sink_that_is_deleted_during_a_check_is_not_compared(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        check = await stage.checker.begin_check(lane)
        await stage.deliverable.forget_sink(lane)
        assert (await stage.checker.end_check(check)).failure
        assert stage.found() == []

    async def test_a_repair_sends_only_changed_and_removed_entries(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="x", c="3", strange="9"))
        assert await stage.checker.repair(lane, PIPELINES, remove_added=False) == 2
        assert await stage.deliver(lane) == [("create", "b", "2"), ("update", "a", "1")]
        actions = {one.key: one.reaction for one in stage.reader.drift(PIPELINES, limit=9).findings}
        assert actions == {"a": "sent again", "b": "sent again", "strange": ""}
        assert await stage.checker.repair(lane, PIPELINES, remove_added=False) == 0, "a repair is not repeated"

    async def test_added_entries_are_removed_only_on_request(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="1", strange="9"))
        assert await stage.checker.repair(lane, PIPELINES, remove_added=True) == 1
        assert await stage.deliver(lane) == [("delete", "strange", None)]
        assert (await stage.check(lane, *rows(a="1"))).found == 0

    async def test_entries_of_another_pipeline_are_not_repaired(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="2"))
        assert await stage.checker.repair(lane, ["another"], remove_added=False) == 0
        assert await stage.pending(lane) == 0

    async def test_an_entry_written_after_the_check_is_not_repaired(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="x", b="x"))
        stage.desire(scalars(a="2"))
        await stage.deliver(lane)
        assert await stage.checker.repair(lane, PIPELINES, remove_added=False) == 1
        assert await stage.deliver(lane) == [("update", "b", "1")]
        await stage.check(lane, *rows(a="x", b="1"))
        stage.desire(scalars(a="3"))
        assert await stage.checker.adopt_drift(lane, PIPELINES) == 0
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "3")]

    async def test_an_adopted_finding_is_no_drift_and_is_not_sent(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        await stage.deliver(lane)
        service = rows(a="x", c="3", strange="9")
        await stage.check(lane, *service)
        assert await stage.checker.adopt_drift(lane, PIPELINES) == 3
        assert await stage.pending(lane) == 0
        assert (await stage.check(lane, *service)).found == 0
        stage.desire(scalars(a="4", strange="9"))
        assert ("a", "4") in {(key, value) for _, key, value in await stage.deliver(lane)}

    async def test_a_repair_and_a_later_change_of_a_key_are_delivered_in_order(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        await stage.check(lane, *rows(a="x"))
        await stage.checker.repair(lane, PIPELINES, remove_added=False)
        claim = await stage.claim(lane)
        stage.desire(scalars(a="2"))
        assert await stage.nothing_to_claim(lane), "the repair is in flight"
        await stage.deliverable.acknowledge(claim)
        assert [item["value"] for item in items(await stage.claim(lane))] == ["2"]

    async def test_a_rejected_key_of_a_claim_in_flight_is_no_drift(self, stage: DriftStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=[], rejected=[RejectedEntry(key="a", reason="No.")])
        assert (await stage.check(lane)).found == 0
        await stage.deliverable.acknowledge(claim)
