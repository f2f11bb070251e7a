"""What became of a former value: delivered, rejected, in a request, never sent, or found in the service."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.port import Claim, DeliveryAttempt, RejectedEntry
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
ATTEMPT = DeliveryAttempt(
    operation="data_sinks.mass",
    items=1,
    status=200,
    milliseconds=1,
    outcome="accepted",
    sentence="The request was accepted.",
)


class FormerStage:
    """A pipeline of one partition. Each reading can be claimed and acknowledged step by step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.time = 100.0
        self.script = Script(batch_rows=1)
        self.mirror = SqliteMirror.open(path, now=lambda: self.time)
        self.mirror.intake.activate(["pipe"])
        self.reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SINK, mirror=self.mirror.intake, emit=lambda event: None,
        )  # fmt: skip

    def read(self, *values: str) -> None:
        self.time += 1
        self.script.write("p", [{"k": "a", "v": value} for value in values])
        self.reader.read_pass()

    async def sink(self) -> int:
        (lane,) = await self.mirror.delivery.lanes()
        return lane.id

    async def claim(self) -> Claim:
        claim = await self.mirror.delivery.claim(await self.sink(), max_items=100, max_bytes=10_000)
        assert claim is not None
        return claim

    async def deliver(self) -> None:
        claim = await self.claim()
        self.time += 1
        await self.mirror.delivery.acknowledge(claim, attempt=ATTEMPT)

    def former(self) -> list[tuple[str | None, str, float | None]]:
        return [(one.value, one.delivery, one.delivered_at) for one in self.mirror.status.former_values("a")]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[FormerStage]:
    made = FormerStage(tmp_path / "state.db")
    yield made
    made.mirror.close()


async def test_a_delivered_value_has_the_time_of_its_acknowledgement(stage: FormerStage) -> None:
    stage.read("1")
    await stage.deliver()
    (origin,) = stage.mirror.status.origins("a")
    assert (origin.delivered_at, origin.operation, origin.status) == (102.0, "data_sinks.mass", 200)
    stage.read("2")
    assert stage.former() == [("1", "delivered", 102.0)]
    (origin,) = stage.mirror.status.origins("a")
    assert (origin.pending, origin.delivered_at) == (True, None)


async def test_a_value_acknowledged_with_a_part_of_its_request_has_its_time(stage: FormerStage) -> None:
    stage.read("1")
    claim = await stage.claim()
    await stage.mirror.delivery.acknowledge_some(claim, delivered=["a"], attempt=ATTEMPT)
    (origin,) = stage.mirror.status.origins("a")
    assert (origin.delivered_at, origin.pending) == (101.0, False)


async def test_a_value_that_was_replaced_before_its_request_was_never_sent(stage: FormerStage) -> None:
    stage.read("1")
    stage.read("2")
    await stage.deliver()
    assert stage.former() == [("1", "pending", None)]


async def test_a_value_that_was_replaced_during_its_request_may_have_been_delivered(stage: FormerStage) -> None:
    stage.read("1")
    claim = await stage.claim()
    stage.read("2")
    await stage.mirror.delivery.acknowledge(claim)
    assert stage.former() == [("1", "sent", None)]


async def test_a_rejected_value_is_no_delivered_one(stage: FormerStage) -> None:
    stage.read("1")
    claim = await stage.claim()
    refused = RejectedEntry(key="a", reason="The service rejects it.", status=422)
    await stage.mirror.delivery.acknowledge_some(claim, delivered=[], rejected=[refused])
    (origin,) = stage.mirror.status.origins("a")
    assert (origin.rejected, origin.delivered_at) == (True, None)
    stage.read("2")
    assert stage.former() == [("1", "rejected", None)]


async def test_a_value_that_the_same_reading_replaces_is_no_former_value(
    stage: FormerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.intake.run._ENTRIES_IN_COMMIT", 1)
    stage.read("1", "2", "3")
    assert stage.former() == []
    await stage.deliver()
    stage.read("4", "5")
    assert stage.former() == [("3", "delivered", 102.0)]


async def test_a_value_of_the_service_that_a_first_delivery_overwrites_is_kept(stage: FormerStage) -> None:
    stage.read("1")
    found = pl.DataFrame({"key": ["a"], "value": ["9"], "data_type": ["scalar"]})
    await stage.mirror.delivery.adopt(await stage.sink(), found)
    await stage.mirror.delivery.adopt(await stage.sink(), found)
    assert [(one.value, one.delivery, one.ending) for one in stage.mirror.status.former_values("a")] == [
        ("9", "found", "overwritten")
    ]


async def test_a_value_that_no_source_had_named_is_a_found_one(stage: FormerStage) -> None:
    stage.script.write("p", [{"k": "b", "v": "0"}])
    stage.reader.read_pass()
    found = pl.DataFrame({"key": ["a"], "value": ["9"], "data_type": ["scalar"]})
    await stage.mirror.delivery.adopt(await stage.sink(), found)
    stage.read("1")
    (former,) = stage.mirror.status.former_values("a")
    assert (former.value, former.delivery, former.pipeline, former.ending) == ("9", "found", "", "replaced")


async def test_all_former_values_are_bounded(stage: FormerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.former_values.AT_MOST", 20)
    stage.script.deletes = "remove"
    for number in range(50):
        stage.script.write("p", [{"k": f"{number}-{row}", "v": "1"} for row in range(3)])
        stage.reader.read_pass()
    with closing(sqlite3.connect(stage.path)) as connection:
        assert connection.execute("SELECT count(*) FROM former").fetchone() == (20,)
    assert [one.ending for one in stage.mirror.status.former_values("48-0")] == ["removed"]
    assert stage.mirror.status.former_values("0-0") == []


def test_a_first_load_stores_no_former_value(stage: FormerStage) -> None:
    stage.read("1")
    stage.read("1")
    with closing(sqlite3.connect(stage.path)) as connection:
        assert connection.execute("SELECT count(*) FROM former").fetchone() == (0,)


def test_a_value_that_another_part_of_the_source_replaces_ended_by_the_run_that_gave_the_key_up(
    stage: FormerStage,
) -> None:
    stage.script.deletes = "remove"
    stage.read("1")
    stage.script.write("q", [{"k": "a", "v": "2"}])
    stage.reader.read_pass()
    stage.script.write("q", [{"k": "b", "v": "2"}])
    stage.reader.read_pass()
    (now,) = stage.mirror.status.origins("a")
    former = [(one.value, one.run, one.ended_by) for one in stage.mirror.status.former_values("a")]
    assert ((now.value, now.run), former) == (("1", 1), [("2", 2, 3), ("1", 1, 2)])
