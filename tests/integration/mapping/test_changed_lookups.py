"""A lookup of a real drop folder: a changed file maps the records again, and a bad one only makes its pipeline wait."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.core.mapping import EntrySpec, LookupSpec, TableSource
from ingestd.intake import PassReport, SourceSupervisor, reader_task
from tests.support.file_flow import FileFlow
from tests.support.supervised_parts import supervise

TABLE = TableSource(file="weights.csv", key="number", value="weight")
SPEC = EntrySpec(key="{part}", value="{weight}", lookup=(("weight", LookupSpec(table=TABLE, by="part")),))
MODIFIED = itertools.count(1_000_000_000)
WEIGHTS = "number,weight,remark\nP-1,1,x\nP-2,2,x\n"


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[FileFlow]:
    (tmp_path / "weights.csv").write_text(WEIGHTS)
    found = FileFlow(tmp_path, spec=SPEC, after="keep", archive=None)
    found.write("a.csv", "part\nP-1\nP-2\n")
    yield found
    found.close()


def changed(flow: FileFlow, content: str) -> None:
    """Replace the table, with a modification time that is not recent."""
    path = flow.base / "weights.csv"
    path.write_text(content)
    modified = next(MODIFIED)
    os.utime(path, (modified, modified))


def test_a_changed_table_sends_only_the_entries_with_other_values(flow: FileFlow) -> None:
    flow.pass_once()
    assert flow.held == {"P-1": "1", "P-2": "2"}
    changed(flow, WEIGHTS.replace("P-2,2", "P-2,2.5"))
    [summary] = flow.pass_once().read
    assert flow.held == {"P-1": "1", "P-2": "2.5"}
    assert (summary.updated, summary.unchanged) == (1, 1)


def test_a_touched_file_and_a_change_of_another_column_map_nothing_again(flow: FileFlow) -> None:
    flow.pass_once()
    changed(flow, WEIGHTS)
    assert flow.pass_once().read == ()
    changed(flow, WEIGHTS.replace("x", "other"))
    assert flow.pass_once().read == ()


def test_a_restart_maps_again_only_if_the_table_changed(flow: FileFlow) -> None:
    flow.pass_once()
    flow.restart()
    assert all(not summary.changed for summary in flow.pass_once().read)
    changed(flow, WEIGHTS.replace("P-1,1", "P-1,7"))
    flow.restart()
    flow.pass_once()
    assert flow.held == {"P-1": "7", "P-2": "2"}


def test_a_key_that_left_the_table_rejects_its_record_until_it_is_back(flow: FileFlow) -> None:
    flow.pass_once()
    changed(flow, WEIGHTS.replace("P-2,2", "P-3,3"))
    flow.pass_once()
    assert flow.rejected() == [("a.csv", 3)]
    changed(flow, WEIGHTS)
    flow.pass_once()
    assert flow.rejected() == []
    assert flow.held == {"P-1": "1", "P-2": "2"}


def test_a_missing_or_wrong_file_is_a_notice_and_changes_nothing(flow: FileFlow) -> None:
    flow.pass_once()
    path = flow.base / "weights.csv"
    path.unlink()
    missing = flow.pass_once()
    assert missing.away == f"The lookup file {path} can't be read: No such file or directory."
    assert [notice.sentence for notice in flow.reader.notices()] == [missing.away]
    changed(flow, WEIGHTS + "P-1,9,x\n")
    twice = f"The lookup file {path} can't be used: line 4 has the same 'number' as line 2: 'P-1'. Remove one of them."
    assert flow.pass_once().away == twice
    changed(flow, WEIGHTS)
    assert flow.pass_once().away == ""
    assert flow.reader.notices() == []
    assert flow.held == {"P-1": "1", "P-2": "2"}


async def test_a_running_pipeline_reads_when_the_table_changes(flow: FileFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_task, "_LOOKUP_SECONDS", 0.02)
    passes: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_pass(report: PassReport) -> None:
        loop.call_soon_threadsafe(passes.put_nowait, sum(summary.updated for summary in report.read))

    flow.reader._on_pass = on_pass
    changed(flow, WEIGHTS + "P-0,0,x\n")
    emit = flow.events.append
    running = SourceSupervisor([flow.reader], emit=emit, random=lambda: 0.0, keep_running=supervise(emit))
    task = asyncio.create_task(running.run())
    try:
        await asyncio.wait_for(passes.get(), 10)
        changed(flow, WEIGHTS.replace("P-1,1", "P-1,8"))
        async with asyncio.timeout(10):
            while await passes.get() != 1:
                pass
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
