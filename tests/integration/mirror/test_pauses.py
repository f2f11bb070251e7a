"""Entries of a paused pipeline are not claimed; those of the other pipelines of its sink are."""

from __future__ import annotations

from pathlib import Path

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")


def read(mirror: SqliteMirror, pipeline: str) -> None:
    script = Script()
    script.write("a", [{"k": f"{pipeline}{number}", "v": "1"} for number in range(3)])
    reader = Reader(
        pipeline=pipeline, connector=ScriptedConnector(script), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SINK, mirror=mirror.intake, emit=lambda _: None,
    )  # fmt: skip
    reader.read_pass()


async def claimed(mirror: SqliteMirror) -> int:
    (lane,) = await mirror.delivery.lanes()
    claim = await mirror.delivery.claim(lane.id, max_items=100, max_bytes=1 << 20)
    items = claim.items if claim is not None else 0
    assert lane.pending == items, "a lane has pending entries only if it may deliver them"
    if claim is not None:
        await mirror.delivery.release(claim)
    return items


async def test_only_the_entries_of_a_paused_pipeline_are_not_claimed_also_after_a_restart(tmp_path: Path) -> None:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    for pipeline in ("p", "q"):
        read(mirror, pipeline)
    assert await claimed(mirror) == 6
    assert mirror.pauses.begin("p", at=1.0, by="anna")
    assert not mirror.pauses.begin("p", at=2.0, by="bert"), "the first pause counts"
    assert not mirror.pauses.begin("unknown", at=2.0, by="bert")
    mirror.close()
    mirror = SqliteMirror.open(tmp_path / "state.db")
    (pause,) = mirror.status.pauses()
    assert (pause.pipeline, pause.since, pause.by, pause.pending) == ("p", 1.0, "anna", 3)
    assert await claimed(mirror) == 3
    assert mirror.status.pending() == 6
    assert mirror.pauses.begin("q", at=3.0, by="anna")
    assert await claimed(mirror) == 0
    assert mirror.pauses.end("p")
    assert mirror.pauses.end("q")
    assert not mirror.pauses.end("q")
    assert await claimed(mirror) == 6
    mirror.close()
