"""What every mirror promises to those who work with what is parked (`ingestd.mirror.rejections`), for refused entries."""

from __future__ import annotations

from abc import abstractmethod

import pytest

from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.rejections import RejectionKeeper, RejectionReader, Selection
from tests.contract.mirror_deliverable import Stage, items, scalars

ALL = Selection()


class RejectionStage(Stage):
    """A mirror with one sink, whose refused entries can be worked with."""

    @property
    @abstractmethod
    def rejections(self) -> RejectionReader: ...

    @property
    @abstractmethod
    def keeper(self) -> RejectionKeeper: ...

    async def refuse(self, lane: int, *keys: str, reason: str = "The service takes no bad values.") -> None:
        """The service takes everything that is pending but these."""
        claim = await self.claim(lane)
        delivered = [item["key"] for item in items(claim) if item["key"] not in keys]
        parked = [
            RejectedEntry(key=key, reason=reason, status=422, operation="mass", request_id=f"r-{key}") for key in keys
        ]
        await self.deliverable.acknowledge_some(claim, delivered=delivered, rejected=parked)
        await self.deliverable.release(claim)

    def keys(self, selection: Selection = ALL) -> list[str]:
        return sorted(one.key for one in self.rejections.selected(selection, limit=100))


class RejectionSuite:
    """Inherit it and give it a ``stage``."""

    @pytest.fixture
    def stage(self) -> RejectionStage:
        raise NotImplementedError

    async def test_a_refused_entry_is_told_with_its_value_and_the_service_s_words(self, stage: RejectionStage) -> None:
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

    async def test_a_selection_chooses_by_number_key_reason_and_pipeline(self, stage: RejectionStage) -> None:
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

    async def test_pages_follow_one_another(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1", c="1"))
        await stage.refuse(lane, "a", "b", "c")
        found, after = [], 0
        while page := stage.rejections.selected(ALL, after=after, limit=2):
            assert len(page) <= 2
            found += [one.id for one in page]
            after = page[-1].id
        assert found == sorted(found)
        assert len(set(found)) == 3

    async def test_what_is_put_back_is_pending_again_as_it_was(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        await stage.refuse(lane, "b", "c")
        assert (await stage.keeper.retry(Selection(key="b"))).entries == 1
        assert stage.keys() == ["c"]
        assert await stage.pending(lane) == 1
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("b", "2")]

    async def test_a_removal_that_was_refused_can_be_put_back_too(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        stage.desire({"b": None})
        await stage.refuse(lane, "b", reason="It is needed.")
        assert [one.removal for one in stage.rejections.selected(ALL, limit=9)] == [True]
        await stage.keeper.retry(ALL)
        assert await stage.deliver(lane) == [("delete", "b", None)]
        assert stage.rejections.count(ALL) == 0

    async def test_a_removal_that_was_refused_is_over_once_the_key_is_named_again(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        stage.desire({"a": None})
        await stage.refuse(lane, "a")
        stage.desire(scalars(a="2"))
        assert stage.rejections.count(ALL) == 0
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "2")]
        await stage.keeper.retry(ALL)
        assert await stage.nothing_to_claim(lane)

    async def test_an_entry_that_is_refused_again_keeps_its_past(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a", reason="First.")
        (before,) = stage.rejections.selected(ALL, limit=9)
        await stage.keeper.retry(ALL)
        await stage.refuse(lane, "a", reason="Second.")
        (one,) = stage.rejections.selected(ALL, limit=9)
        assert (one.at, one.times, one.reason) == (before.at, 2, "Second.")
        assert one.last_at > one.at
        assert one.id > before.id, "a number is never used again"
        assert [refusal.words for refusal in stage.rejections.refusals(one.id)] == ["First.", "Second."]

    async def test_a_retry_while_the_claim_is_still_out_sends_it_once(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=[], rejected=[RejectedEntry(key="a", reason="No.")])
        await stage.keeper.retry(ALL)
        await stage.deliverable.acknowledge_some(claim, delivered=["b"])
        await stage.deliverable.release(claim)
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "1")]
        assert await stage.pending(lane) == 0

    async def test_what_is_dropped_is_not_sent_until_it_changes(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.refuse(lane, "a", "b")
        assert await stage.keeper.drop(Selection(key="a")) == 1
        assert stage.keys() == ["b"]
        stage.desire(scalars(a="1"))
        assert await stage.pending(lane) == 0
        stage.desire(scalars(a="2"))
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "2")]

    async def test_without_bounds_nothing_is_forgotten(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        assert await stage.keeper.bound(keep_seconds=None, keep_rows=None) == 0
        assert (stage.rejections.count(ALL), stage.rejections.forgotten()) == (1, None)

    async def test_beyond_a_number_the_oldest_are_forgotten_and_that_is_kept_in_mind(
        self, stage: RejectionStage
    ) -> None:
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

    async def test_what_is_older_than_the_bound_is_forgotten(self, stage: RejectionStage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        assert await stage.keeper.bound(keep_seconds=1_000_000, keep_rows=None) == 0
        assert await stage.keeper.bound(keep_seconds=0, keep_rows=None) == 1
        assert stage.keys() == []

    async def test_of_a_sink_that_was_lost_everything_is_sent_again_and_nothing_is_parked(
        self, stage: RejectionStage
    ) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.refuse(lane, "a")
        await stage.deliverable.forget_sink(lane)
        assert stage.rejections.count(ALL) == 0
        assert await stage.deliver(lane) == [("create", "a", "1")]
