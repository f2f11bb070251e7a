"""The origins of claimed entries: the run, the file and the rows of exactly the items of each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec
from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.intake import Reader
from ingestd.mirror.port import Claim, RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.wire.origin import decode_row_steps
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")


class Stage:
    """A pipeline of files with the columns ``k`` and ``v``."""

    def __init__(self, path: Path) -> None:
        self.script = Script(batch_rows=100)
        self.mirror = SqliteMirror.open(path)
        self.mirror.intake.activate(["pipe"])
        self.reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), mapping=EntryMapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SINK, mirror=self.mirror.intake, emit=lambda event: None,
        )  # fmt: skip

    def read(self, name: str, values: Mapping[str, str]) -> None:
        self.script.write(name, [{"k": key, "v": value} for key, value in values.items()])
        self.reader.read_pass()

    async def claim(self, items: int = 100) -> Claim:
        (lane,) = await self.mirror.delivery.lanes()
        claim = await self.mirror.delivery.claim(lane.id, max_items=items, max_bytes=100_000)
        assert claim is not None
        return claim


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db")
    yield made
    made.mirror.close()


def origins(claim: Claim) -> dict[str, tuple[str, str, int, int]]:
    """Return pipeline, partition, run and row of each claimed key."""
    return {
        item["key"]: (part.origin.pipeline, part.origin.partition, part.origin.run, row)
        for part in claim.parts
        for item, row in zip(
            msgspec.json.decode(part.body), decode_row_steps(part.row_steps, part.items), strict=True
        )
    }  # fmt: skip


def runs(claim: Claim) -> dict[str, tuple[int, int]]:
    return {key: origin[2:] for key, origin in origins(claim).items()}


async def test_each_claimed_item_has_its_run_and_row(stage: Stage) -> None:
    stage.read("one.csv", {"c": "1", "a": "1", "b": "1"})
    rows = {key: row for key, (*_, row) in origins(await stage.claim()).items()}
    assert rows["a"] == rows["c"] + 1
    assert rows["b"] == rows["c"] + 2


async def test_a_part_that_is_cut_or_lost_items_has_the_rows_of_the_others(stage: Stage) -> None:
    stage.read("one.csv", dict.fromkeys("edcba", "1"))
    whole = await stage.claim()
    await stage.mirror.delivery.release(whole)
    cut = await stage.claim(items=2)
    assert runs(cut) == {key: runs(whole)[key] for key in "ab"}
    await stage.mirror.delivery.release(cut)
    stage.read("one.csv", {"e": "1", "d": "1", "c": "1", "b": "2", "a": "1"})
    changed = runs(await stage.claim())
    assert {key: row for key, (_, row) in changed.items()} == {key: row for key, (_, row) in runs(whole).items()}
    assert {key for key, (run, _) in changed.items() if run != whole.parts[0].origin.run} == {"b"}


async def test_entries_that_become_pending_again_keep_their_origin(stage: Stage) -> None:
    stage.read("one.csv", {"b": "1", "a": "1"})
    stage.read("two.csv", {"c": "1"})
    first = await stage.claim()
    await stage.mirror.delivery.acknowledge(first)
    (lane,) = await stage.mirror.delivery.lanes()
    await stage.mirror.delivery.forget_sink(lane.id)
    again = await stage.claim()
    assert origins(again) == origins(first)
    assert {origin[1] for origin in origins(again).values()} == {"one.csv", "two.csv"}
    rejected = [RejectedEntry(key="a", reason="No.")]
    await stage.mirror.delivery.acknowledge_some(again, delivered=["b", "c"], rejected=rejected)
    await stage.mirror.delivery.release(again)
    await stage.mirror.rejected.retry(Selection())
    assert origins(await stage.claim()) == {"a": origins(first)["a"]}


async def test_a_removal_comes_from_the_run_that_missed_the_record(stage: Stage) -> None:
    stage.script.deletes = "remove"
    stage.read("one.csv", {"a": "1", "b": "1"})
    first = await stage.claim()
    await stage.mirror.delivery.acknowledge(first)
    stage.read("one.csv", {"a": "1"})
    removed = origins(await stage.claim())
    assert removed == {"b": ("pipe", "one.csv", removed["b"][2], 0)}
    assert removed["b"][2] > first.parts[0].origin.run
