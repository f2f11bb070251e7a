"""A pipeline gets the right sink after the service never had the sink that the configuration named: nothing stays behind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.record import Partition
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.desired_entries import SCHEMA

WRONG, RIGHT = (SinkAddress(workspace=name, by="label", name="s") for name in ("Rovre", "Rover"))


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[SqliteMirror]:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    yield mirror
    mirror.close()


def configure(mirror: SqliteMirror, **sinks: SinkAddress) -> None:
    mirror.intake.reconfigure([*sinks], sources={name: str(sink) for name, sink in sinks.items()}, ended=[])


def read(
    mirror: SqliteMirror, pipeline: str, sink: SinkAddress, entries: Mapping[str, str], *, replayable: bool = True
) -> None:
    """Read a whole file, or records that the source gives only once."""
    partition = Partition(
        name="data", snapshot=replayable, replayable=replayable, deletes="remove" if replayable else "keep"
    )
    state = mirror.intake.open_partition(pipeline, partition, sink, "digest")
    if not entries:
        return
    rows = [(key, value, "scalar", row, row) for row, (key, value) in enumerate(entries.items(), start=2)]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    run = mirror.intake.begin_run(state.id, snapshot=replayable, whole=replayable)
    mirror.intake.commit(run, entries=frame, records=len(rows), rejects=(), cursor={}, facts={})
    mirror.intake.finish_run(run, cursor={"read": 1}, seen=None, deletes=partition.deletes)


async def pending(mirror: SqliteMirror) -> dict[str, dict[str, str]]:
    """Return the pending values of each sink, by key."""
    found = {}
    for lane in await mirror.delivery.lanes():
        claim = await mirror.delivery.claim(lane.id, max_items=100, max_bytes=1 << 20)
        items = [item for part in claim.parts for item in json.loads(part.body)] if claim else []
        assert lane.pending == len(items)
        found[lane.address.workspace] = {item["key"]: item["value"] for item in items}
        if claim is not None:
            await mirror.delivery.release(claim)
    return found


async def test_a_file_leaves_no_pending_entries_in_a_sink_that_the_service_never_had(mirror: SqliteMirror) -> None:
    configure(mirror, p=WRONG)
    read(mirror, "p", WRONG, {"a": "1", "gone": "1"})
    configure(mirror, p=RIGHT)
    read(mirror, "p", RIGHT, {"a": "2"})
    assert await pending(mirror) == {"Rovre": {}, "Rover": {"a": "2"}}
    assert [origin.sink for origin in mirror.status.origins("gone")] == []


async def test_pushed_records_follow_their_pipeline_to_the_right_sink(mirror: SqliteMirror) -> None:
    configure(mirror, p=WRONG)
    read(mirror, "p", WRONG, {"a": "1", "b": "1"}, replayable=False)
    read(mirror, "p", WRONG, {"b": "2"}, replayable=False)
    configure(mirror, p=RIGHT)
    read(mirror, "p", RIGHT, {}, replayable=False)
    assert await pending(mirror) == {"Rovre": {}, "Rover": {"a": "1", "b": "2"}}
    (origin,) = mirror.status.origins("b")
    assert (origin.workspace, origin.pipeline, origin.run) == ("Rover", "p", 2)


async def test_entries_that_another_pipeline_names_stay_in_the_wrong_sink_until_it_is_corrected_too(
    mirror: SqliteMirror,
) -> None:
    configure(mirror, p=WRONG, q=WRONG)
    read(mirror, "p", WRONG, {"a": "1", "both": "1"})
    read(mirror, "q", WRONG, {"both": "1", "other": "1"})
    configure(mirror, p=RIGHT, q=WRONG)
    read(mirror, "p", RIGHT, {"a": "1", "both": "1"})
    assert await pending(mirror) == {"Rovre": {"both": "1", "other": "1"}, "Rover": {"a": "1", "both": "1"}}
    configure(mirror, p=RIGHT, q=RIGHT)
    read(mirror, "q", RIGHT, {"both": "1", "other": "1"})
    assert await pending(mirror) == {"Rovre": {}, "Rover": {"a": "1", "both": "1", "other": "1"}}


async def test_entries_of_a_sink_that_the_service_has_stay_pending_there(mirror: SqliteMirror) -> None:
    configure(mirror, p=WRONG)
    read(mirror, "p", WRONG, {"a": "1"})
    await mirror.delivery.remember_sink(1, workspace_id="w", sink_id="s", adopted=True)
    configure(mirror, p=RIGHT)
    read(mirror, "p", RIGHT, {"a": "1"})
    assert await pending(mirror) == {"Rovre": {"a": "1"}, "Rover": {"a": "1"}}
