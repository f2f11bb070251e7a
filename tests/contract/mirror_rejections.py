"""The promises of every mirror to commands on rejected entries (`ingestd.mirror.rejections`)."""

from __future__ import annotations

from abc import abstractmethod

import pytest

from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from tests.contract.mirror_deliverable import Stage, held, items, scalars

ALL = Selection()


class RejectionStage(Stage):
    """A mirror with one sink and rejected entries."""

    @property
    @abstractmethod
    def rejections(self) -> Observer: ...

    @property
    @abstractmethod
    def keeper(self) -> RejectedStore: ...

    async def refuse(self, lane: int, *keys: str, reason: str = "The service takes no bad values.") -> None:
        """Acknowledge everything pending except these keys, which the service rejects."""
        claim = await self.claim(lane)
        delivered = [item["key"] for item in items(claim) if item["key"] not in keys]
        rejected = [
            RejectedEntry(key=key, reason=reason, status=422, operation="mass", request_id=f"r-{key}") for key in keys
        ]
        await self.deliverable.acknowledge_some(claim, delivered=delivered, rejected=rejected)
        await self.deliverable.release(claim)

    def keys(self, selection: Selection = ALL) -> list[str]:
        return sorted(one.key for one in self.rejections.selected(selection, limit=100))


class RejectionSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> RejectionStage:
        raise NotImplementedError

    async def test_a_rejected_entry_has_its_value_and_the_reason_of_the_service(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="0.10"))
        await stage.refuse(lane, "b")
        (one,) = stage.rejections.selected(ALL, limit=100)
        assert (one.subject, one.key, one.value, one.data_type, one.removal) == ("entry", "b", "0.10", "scalar", False)
        assert (one.status, one.reason, one.times) == (422, "The service takes no bad values.", 1)
        assert one.at == one.last_at
        (refusal,) = stage.rejections.refusals(one.id)
        assert (refusal.at, refusal.operation, refusal.status, refusal.request_id, refusal.words) == (
            one.at, "mass", 422, "r-b", one.reason,
        )  # fmt: skip

    async def test_a_selection_filters_by_number_key_reason_and_pipeline(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", ab="1", b="1"))
        await stage.refuse(lane, "a", "ab", "b")
        stage.desire(scalars(c="1"))
        await stage.refuse(lane, "c", reason="Too LARGE.")
        first, *_ = stage.rejections.selected(ALL, limit=100)
        assert stage.keys() == ["a", "ab", "b", "c"]
        assert stage.keys(Selection(ids=(first.id,))) == [first.key]
        assert stage.keys(Selection(key="a")) == ["a"]
        assert stage.keys(Selection(key="a*")) == ["a", "ab"]
        assert stage.keys(Selection(reason="too large")) == ["c"]
        assert stage.keys(Selection(reason="bad values", key="b")) == ["b"]
        assert stage.keys(Selection(pipeline=first.pipeline)) == ["a", "ab", "b", "c"]
        assert stage.keys(Selection(pipeline="another")) == []
        assert stage.rejections.count(Selection(key="a*")) == 2

    async def test_rejections_are_paged(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1", c="1"))
        await stage.refuse(lane, "a", "b", "c")
        found, after = [], 0
        while page := stage.rejections.selected(ALL, after=after, limit=2):
            assert len(page) <= 2
            found += [one.id for one in page]
            after = page[-1].id
        assert found == sorted(found)
        assert len(set(found)) == 3

    async def test_the_records_of_a_page_are_read_up_to_a_rejection(self, stage: RejectionStage) -> None:
        assert stage.rejections.newest() == 0
        lane = stage.desire(scalars(a="1", b="1", c="1"))
        await stage.refuse(lane, "a", "b", "c")
        first, second, third = (one.id for one in stage.rejections.selected(ALL, limit=9))
        assert stage.rejections.newest() == third
        page = stage.rejections.records(ALL, until=second, limit=1)
        assert page is not None
        assert (page.last, [*page.records], [*page.pipelines]) == (first, [], []), "an entry has no record"
        page = stage.rejections.records(ALL, after=first, until=second, limit=9)
        assert page is not None
        assert page.last == second
        assert stage.rejections.records(ALL, after=second, until=second, limit=9) is None

    async def test_a_retried_entry_is_pending_with_its_value(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        await stage.refuse(lane, "b", "c")
        assert (await stage.keeper.retry(Selection(key="b"))).entries == 1
        assert stage.keys() == ["c"]
        assert await stage.pending(lane) == 1
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("b", "2")]

    async def test_an_entry_that_the_service_never_had_is_removed_without_a_request(
        self, stage: RejectionStage
    ) -> None:
        lane = stage.desire(scalars(a="1", **{" b": "1"}))
        await stage.refuse(lane, " b")
        stage.desire({" b": ("2", "scalar")})
        await stage.refuse(lane, " b")
        stage.desire({" b": None})
        assert await stage.nothing_to_claim(lane)
        assert stage.rejections.count(ALL) == 0

    async def test_an_entry_with_a_refused_value_is_removed_if_the_service_has_its_former_value(
        self, stage: RejectionStage
    ) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        stage.desire(scalars(a="bad"))
        await stage.refuse(lane, "a")
        stage.desire({"a": None})
        assert await stage.deliver(lane) == [("delete", "a", None)]

    async def test_an_entry_with_a_refused_value_is_removed_if_the_service_had_it_before(
        self, stage: RejectionStage
    ) -> None:
        for key, first in (("late", False), ("early", True)):
            lane = stage.desire(scalars(other="1") if first else {key: ("bad", "scalar")})
            await stage.deliverable.adopt(lane, held((key, "5", "scalar"), ("other", "1", "scalar")))
            stage.desire({key: ("bad", "scalar")})
            await stage.refuse(lane, key)
            stage.desire({key: None})
            assert ("delete", key, None) in await stage.deliver(lane), key

    async def test_a_rejected_removal_can_be_retried(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        stage.desire({"b": None})
        await stage.refuse(lane, "b", reason="It is needed.")
        assert [one.removal for one in stage.rejections.selected(ALL, limit=9)] == [True]
        await stage.keeper.retry(ALL)
        assert await stage.deliver(lane) == [("delete", "b", None)]
        assert stage.rejections.count(ALL) == 0

    async def test_a_rejected_removal_disappears_when_the_key_is_named_again(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        stage.desire({"a": None})
        await stage.refuse(lane, "a")
        stage.desire(scalars(a="2"))
        assert stage.rejections.count(ALL) == 0
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "2")]
        await stage.keeper.retry(ALL)
        assert await stage.nothing_to_claim(lane)

    async def test_an_entry_that_is_rejected_again_keeps_its_history(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a", reason="First.")
        (before,) = stage.rejections.selected(ALL, limit=9)
        await stage.keeper.retry(ALL)
        await stage.refuse(lane, "a", reason="Second.")
        (one,) = stage.rejections.selected(ALL, limit=9)
        assert (one.at, one.times, one.reason) == (before.at, 2, "Second.")
        assert one.last_at > one.at
        assert one.id > before.id, "ids are never reused"
        assert [refusal.words for refusal in stage.rejections.refusals(one.id)] == ["First.", "Second."]

    async def test_a_retry_of_a_key_in_flight_sends_it_once(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=[], rejected=[RejectedEntry(key="a", reason="No.")])
        await stage.keeper.retry(ALL)
        await stage.deliverable.acknowledge_some(claim, delivered=["b"])
        await stage.deliverable.release(claim)
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "1")]
        assert await stage.pending(lane) == 0

    async def test_a_dropped_entry_is_not_sent_until_it_changes(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.refuse(lane, "a", "b")
        assert await stage.keeper.drop(Selection(key="a")) == 1
        assert stage.keys() == ["b"]
        stage.desire(scalars(a="1"))
        assert await stage.pending(lane) == 0
        stage.desire(scalars(a="2"))
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "2")]

    async def test_without_bounds_no_rejection_is_deleted(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        assert await stage.keeper.bound(keep_seconds=None, keep_rows=None) == 0
        assert (stage.rejections.count(ALL), stage.rejections.forgotten()) == (1, None)

    async def test_the_oldest_rejections_beyond_the_limit_are_deleted_and_counted(self, stage: RejectionStage) -> None:
        lane = stage.desire({})
        for key in "abc":
            stage.desire(scalars(**{key: "1"}))
            await stage.refuse(lane, key)
        assert await stage.keeper.bound(keep_seconds=None, keep_rows=2) == 1
        assert stage.keys() == ["b", "c"]
        assert await stage.keeper.bound(keep_seconds=None, keep_rows=0) == 2
        forgotten = stage.rejections.forgotten()
        assert forgotten is not None
        assert forgotten.count == 3
        assert await stage.pending(lane) == 0

    async def test_rejections_older_than_the_limit_are_deleted(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        assert await stage.keeper.bound(keep_seconds=1_000_000, keep_rows=None) == 0
        assert await stage.keeper.bound(keep_seconds=0, keep_rows=None) == 1
        assert stage.keys() == []

    async def test_losing_a_sink_sends_everything_again_and_keeps_no_rejection(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        await stage.deliverable.forget_sink(lane)
        assert stage.rejections.count(ALL) == 0
        assert await stage.deliver(lane) == [("create", "a", "1")]
