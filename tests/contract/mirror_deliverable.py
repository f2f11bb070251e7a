"""The promises of every mirror to delivery (`DeliveryStore`), as tests that each implementation inherits."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Claim, DeliveryAttempt, RejectedEntry
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from tests.support.memory_mirror import Desired

SINK = SinkAddress(workspace="bench", by="label", name="Mass budget")
ATTEMPT = DeliveryAttempt(
    operation="mass", items=1, status=200, milliseconds=1.5, outcome="accepted", sentence="Accepted."
)


class Stage(ABC):
    """A mirror with one sink, and the intake side that sets its desired entries."""

    @property
    @abstractmethod
    def deliverable(self) -> DeliveryStore:
        """The side under test."""

    @abstractmethod
    def desire(self, entries: Mapping[str, Desired | None]) -> int:
        """Set desired values of the sink (None: the key is not desired); unnamed keys are unchanged. Return the sink's id."""

    async def claim(self, lane: int, *, items: int = 100, size: int = 100_000) -> Claim:
        """Return a claim; fail if there is none."""
        claim = await self.deliverable.claim(lane, max_items=items, max_bytes=size)
        assert claim is not None
        return claim

    async def nothing_to_claim(self, lane: int) -> bool:
        return await self.deliverable.claim(lane, max_items=100, max_bytes=100_000) is None

    async def deliver(self, lane: int) -> list[tuple[str, str, str | None]]:
        """Deliver all that can be claimed; return the delivered items."""
        sent = []
        while (claim := await self.deliverable.claim(lane, max_items=100, max_bytes=100_000)) is not None:
            sent += work(claim)
            await self.deliverable.acknowledge(claim)
        return sorted(sent)

    async def pending(self, lane: int) -> int:
        return next(state.pending for state in await self.deliverable.lanes() if state.id == lane)


def items(claim: Claim) -> list[dict[str, Any]]:
    return [item for part in claim.parts for item in json.loads(part.body)]


def work(claim: Claim) -> list[tuple[str, str, str | None]]:
    """Return (kind, key, value) of each item in the order of the keys."""
    return sorted((part.kind, item["key"], item.get("value")) for part in claim.parts for item in json.loads(part.body))


def scalars(**values: str | None) -> dict[str, Desired | None]:
    return {key: (value, "scalar") for key, value in values.items()}


def held(*rows: tuple[str, str | None, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"key": pl.String, "value": pl.String, "data_type": pl.String}, orient="row")


class DeliverableSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> Stage:
        raise NotImplementedError

    async def test_an_item_has_key_value_and_type_exactly_as_desired(self, stage: Stage) -> None:
        lane = stage.desire({"a/ä \"'\\": ("0.10", "scalar"), "b": ("", "text"), "c": ("\u2028 1e-7\n", "text")})
        claim = await stage.claim(lane)
        assert sorted(items(claim), key=lambda item: str(item["key"])) == [
            {"key": "a/ä \"'\\", "value": "0.10", "dataType": "scalar"},
            {"key": "b", "value": "", "dataType": "text"},
            {"key": "c", "value": "\u2028 1e-7\n", "dataType": "text"},
        ]
        assert claim.items == 3
        assert {part.items for part in claim.parts} == {3}

    async def test_an_acknowledged_claim_leaves_nothing_pending(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        assert await stage.pending(lane) == 2
        await stage.deliverable.acknowledge(await stage.claim(lane), attempt=ATTEMPT)
        assert await stage.pending(lane) == 0
        assert await stage.nothing_to_claim(lane)

    async def test_a_key_is_created_then_updated_then_deleted_then_created(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        assert await stage.deliver(lane) == [("create", "a", "1")]
        stage.desire(scalars(a="2"))
        assert await stage.deliver(lane) == [("update", "a", "2")]
        stage.desire({"a": None})
        assert await stage.deliver(lane) == [("delete", "a", None)]
        stage.desire(scalars(a="3"))
        assert await stage.deliver(lane) == [("create", "a", "3")]

    async def test_a_delete_item_has_kind_delete(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        await stage.deliver(lane)
        stage.desire({"a": None})
        assert items(await stage.claim(lane)) == [{"key": "a", "delete": True}]

    async def test_an_equal_value_is_not_pending_again_and_another_type_is(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliver(lane)
        stage.desire(scalars(a="1"))
        assert await stage.pending(lane) == 0
        stage.desire({"a": ("1", "text")})
        assert await stage.deliver(lane) == [("update", "a", "1")]

    async def test_claims_in_flight_have_disjoint_keys(self, stage: Stage) -> None:
        wanted: dict[str, Desired] = {"K-00": ("0", "scalar")}
        lane = stage.desire(wanted)
        for group in range(1, 3):
            wanted |= {f"K-{group}{number}": (str(number), "scalar") for number in range(3)}
            stage.desire(wanted)
        in_flight: list[Claim] = []
        for turn in range(5):
            claim = await stage.deliverable.claim(lane, max_items=3, max_bytes=100_000)
            if claim is None:
                break
            in_flight.append(claim)
            wanted |= {f"K-{turn % 3}0": (f"changed {turn}", "scalar"), f"L-{turn}": ("new", "scalar")}
            stage.desire(wanted)
        keys = [item["key"] for claim in in_flight for item in items(claim)]
        assert len(in_flight) > 1
        assert len(keys) == len(set(keys))
        held = {}
        for claim in in_flight:
            held.update({key: value for _, key, value in work(claim)})
            await stage.deliverable.acknowledge(claim)
        held.update({key: value for _, key, value in await stage.deliver(lane)})
        assert held == {key: value for key, (value, _) in wanted.items()}

    async def test_a_claim_respects_its_limits_and_has_at_least_one_entry(self, stage: Stage) -> None:
        lane = stage.desire({f"K-{number}": ("x" * 100, "text") for number in range(5)})
        claim = await stage.claim(lane, items=2)
        assert claim.items == len(items(claim)) == 2
        await stage.deliverable.release(claim)
        claim = await stage.claim(lane, size=10)
        assert claim.items == 1
        await stage.deliverable.acknowledge(claim)
        claim = await stage.claim(lane, size=400)
        assert 1 <= claim.items <= 3
        assert sum(len(part.body) for part in claim.parts) <= 400 + 2
        await stage.deliverable.acknowledge(claim)
        sent = await stage.deliver(lane)
        assert len(sent) == 4 - claim.items

    async def test_a_claim_is_complete_if_nothing_else_is_pending(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        limited = await stage.claim(lane, items=2)
        assert not limited.is_complete
        await stage.deliverable.release(limited)
        whole = await stage.claim(lane)
        assert whole.is_complete
        stage.desire(scalars(d="4"))
        assert not (await stage.claim(lane)).is_complete  # what is in flight is still pending
        await stage.deliverable.acknowledge(whole)
        stage.desire(scalars(e="5"))
        stage.desire(scalars(f="6"))
        assert not (await stage.claim(lane, items=1)).is_complete

    async def test_the_oldest_pending_entry_is_claimed_first(self, stage: Stage) -> None:
        lane = stage.desire(scalars(z="1"))
        stage.desire(scalars(a="1"))
        assert [item["key"] for item in items(await stage.claim(lane, items=1))] == ["z"]

    async def test_a_value_that_was_replaced_before_delivery_is_not_sent(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        stage.desire(scalars(a="2"))
        stage.desire(scalars(a="3"))
        assert await stage.deliver(lane) == [("create", "a", "3"), ("create", "b", "1")]

    async def test_an_entry_that_was_removed_before_delivery_is_never_created(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        stage.desire({"a": None})
        assert ("create", "a", "1") not in await stage.deliver(lane)
        assert await stage.pending(lane) == 0

    async def test_a_key_with_an_older_value_in_flight_is_not_claimed(self, stage: Stage) -> None:
        lane = stage.desire(scalars(k="1"))
        first = await stage.claim(lane)
        stage.desire(scalars(k="2"))
        assert await stage.nothing_to_claim(lane)
        await stage.deliverable.acknowledge(first)
        assert await stage.pending(lane) == 1
        assert [item["value"] for item in items(await stage.claim(lane))] == ["2"]

    async def test_a_key_in_flight_is_not_claimed_after_several_changes(self, stage: Stage) -> None:
        lane = stage.desire(scalars(k="1"))
        first = await stage.claim(lane)
        stage.desire(scalars(k="2", other="1"))
        stage.desire(scalars(k="3"))
        meanwhile = await stage.deliverable.claim(lane, max_items=100, max_bytes=100_000)
        assert meanwhile is None or [item["key"] for item in items(meanwhile)] == ["other"], (
            "other entries may be sent or wait"
        )
        assert await stage.nothing_to_claim(lane)
        await stage.deliverable.acknowledge(first)
        if meanwhile is not None:
            await stage.deliverable.release(meanwhile)
        assert {(key, value) for _, key, value in await stage.deliver(lane)} == {("k", "3"), ("other", "1")}

    async def test_a_key_with_a_removal_in_flight_is_not_claimed(self, stage: Stage) -> None:
        lane = stage.desire(scalars(k="1"))
        await stage.deliver(lane)
        stage.desire({"k": None})
        removal = await stage.claim(lane)
        stage.desire(scalars(k="2"))
        assert await stage.nothing_to_claim(lane)
        await stage.deliverable.acknowledge(removal)
        assert [item["value"] for item in items(await stage.claim(lane))] == ["2"]

    async def test_a_replaced_value_that_is_released_is_not_sent_again(self, stage: Stage) -> None:
        lane = stage.desire(scalars(k="1", l="1"))
        first = await stage.claim(lane)
        stage.desire(scalars(k="2"))
        await stage.deliverable.release(first)
        assert {(key, value) for _, key, value in await stage.deliver(lane)} == {("k", "2"), ("l", "1")}

    async def test_a_released_claim_is_pending_again(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        claim = await stage.claim(lane)
        assert await stage.pending(lane) == 2
        await stage.deliverable.release(claim, attempt=ATTEMPT)
        assert await stage.deliver(lane) == [("create", "a", "1"), ("create", "b", "2")]

    async def test_releasing_an_acknowledged_claim_has_no_effect(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge(claim)
        await stage.deliverable.release(claim)
        assert await stage.nothing_to_claim(lane)

    async def test_keys_of_a_claim_that_are_not_acknowledged_stay_in_flight_until_released(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=["a"], attempt=ATTEMPT)
        assert await stage.pending(lane) == 2
        assert await stage.nothing_to_claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=["c"])
        await stage.deliverable.release(claim)
        assert await stage.deliver(lane) == [("create", "b", "2")]

    async def test_the_rest_of_a_partly_acknowledged_claim_can_be_acknowledged(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        claim = await stage.claim(lane)
        await stage.deliverable.acknowledge_some(claim, delivered=["a"])
        await stage.deliverable.acknowledge(claim)
        assert await stage.pending(lane) == 0

    async def test_acknowledging_a_limited_claim_leaves_the_rest_of_its_segment_pending(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2", c="3"))
        claim = await stage.claim(lane, items=2)
        await stage.deliverable.acknowledge(claim)
        assert await stage.pending(lane) == 1
        assert len(await stage.deliver(lane)) == 1

    async def test_a_new_value_stays_pending_when_the_old_one_is_acknowledged(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        claim = await stage.claim(lane)
        stage.desire(scalars(a="2"))
        await stage.deliverable.acknowledge_some(claim, delivered=["a", "b"])
        await stage.deliverable.release(claim)
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("a", "2")]

    async def test_a_replaced_value_is_as_old_as_the_first_one_that_may_have_been_sent(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="1"))
        (first,) = (claim := await stage.claim(lane)).parts
        assert first.oldest == first.segment
        await stage.deliverable.release(claim)
        for value in "23":
            stage.desire(scalars(a=value))
        claim = await stage.claim(lane)
        (replaced,) = (part for part in claim.parts if b'"a"' in part.body)
        assert replaced.oldest == first.segment < replaced.segment
        await stage.deliverable.acknowledge(claim)
        stage.desire(scalars(a="4"))
        (fresh,) = (await stage.claim(lane)).parts
        assert fresh.oldest == fresh.segment > replaced.segment

    async def test_a_rejected_entry_is_not_pending_until_it_changes(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="bad"))
        claim = await stage.claim(lane)
        rejection = RejectedEntry(key="b", reason="The service takes no bad values.", status=400)
        await stage.deliverable.acknowledge_some(claim, delivered=["a"], rejected=[rejection])
        await stage.deliverable.release(claim)
        assert await stage.pending(lane) == 0
        stage.desire(scalars(b="good"))
        assert [(key, value) for _, key, value in await stage.deliver(lane)] == [("b", "good")]

    async def test_the_service_ids_of_a_sink_are_stored(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        (state,) = await stage.deliverable.lanes()
        assert (state.id, state.address, state.workspace_id, state.sink_id) == (lane, SINK, "", "")
        assert not state.adopted
        await stage.deliverable.remember_sink(lane, workspace_id="w-1", sink_id="s-1", adopted=True)
        (state,) = await stage.deliverable.lanes()
        assert (state.workspace_id, state.sink_id, state.adopted, state.pending) == ("w-1", "s-1", True, 1)

    async def test_forgetting_a_sink_makes_all_its_entries_pending_as_creates(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2", gone="3"))
        await stage.deliver(lane)
        await stage.deliverable.remember_sink(lane, workspace_id="w-1", sink_id="s-1", adopted=True)
        stage.desire({"a": ("1.1", "scalar"), "gone": None})
        await stage.deliverable.forget_sink(lane)
        (state,) = await stage.deliverable.lanes()
        assert (state.workspace_id, state.sink_id, state.adopted) == ("", "", False)
        assert await stage.deliver(lane) == [("create", "a", "1.1"), ("create", "b", "2")]
        assert await stage.pending(lane) == 0

    async def test_adopting_a_sink_acknowledges_equal_entries_and_updates_different_ones(self, stage: Stage) -> None:
        lane = stage.desire(
            {"equal": ("1", "scalar"), "value": ("1", "scalar"), "type": ("1", "text"), "new": ("1", "text")}
        )
        found = held(("equal", "1", "scalar"), ("value", "2", "scalar"), ("type", "1", "scalar"))
        assert await stage.deliverable.adopt(lane, found) == 1
        assert await stage.deliver(lane) == [("create", "new", "1"), ("update", "type", "1"), ("update", "value", "1")]

    async def test_an_adopted_entry_that_no_source_names_counts_as_delivered(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        assert await stage.deliverable.adopt(lane, held(("strange", "9", "scalar"), ("empty", None, "text"))) == 0
        assert await stage.deliver(lane) == [("create", "a", "1")]
        stage.desire({"strange": ("9", "scalar"), "empty": ("0", "text")})
        assert await stage.deliver(lane) == [("update", "empty", "0")]

    async def test_a_sink_can_be_adopted_in_parts_and_repeatedly(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1", b="2"))
        pieces = [held((key, value, "scalar")) for key, value in (("a", "1"), ("b", "2"), ("a", "1"))]
        adopted = [await stage.deliverable.adopt(lane, piece) for piece in pieces]
        assert adopted == [1, 1, 0]
        assert await stage.nothing_to_claim(lane)

    async def test_the_last_adopted_value_of_an_unnamed_entry_counts(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliverable.adopt(lane, held(("strange", "1", "scalar")))
        await stage.deliverable.adopt(lane, held(("strange", "2", "scalar")))
        assert await stage.deliver(lane) == [("create", "a", "1")]
        stage.desire(scalars(strange="1"))
        assert await stage.deliver(lane) == [("update", "strange", "1")]

    async def test_an_attempt_can_be_recorded_without_a_claim(self, stage: Stage) -> None:
        lane = stage.desire(scalars(a="1"))
        await stage.deliverable.note_attempt(lane, ATTEMPT)
        assert await stage.deliver(lane) == [("create", "a", "1")]
