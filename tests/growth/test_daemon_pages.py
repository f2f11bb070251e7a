"""The work of each page of the daemon over a growing state file, in steps of SQLite's virtual machine.

The state file has N entries, N rejections, N keys that others changed and a held run of N differences, then 4N of each. The
overview and the page of a pipeline must cost the same for both. A page with a total may read everything once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from ingestd.core.guard import Guard
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.source_passes import SourcePasses
from ingestd.delivery.drift import DriftChecker
from ingestd.mirror.drift import START
from ingestd.web.event_counts import EventCounts
from ingestd.web.pages import PageContent, PageContents, selection_of
from tests.support.counted_pipeline import CountedPipeline, rows
from tests.support.scripted_source import Row, Script
from tests.support.work_counter import RATIO, STEPS_COUNTED, Work, counting_connections

N: Final = 400
SLACK: Final = 1_000
"""Steps that a page spends independently of its rows."""
STEPS_OF_A_REJECTION: Final = 3
"""What a page of pipelines spends on each rejection, which it counts in an index. A setting limits their number."""
LAST: Final = "part-999999"

Read = Callable[[PageContents, int], PageContent | list[str]]
OVERVIEW: Final[Mapping[str, Read]] = {
    "overview": lambda pages, _: pages.overview(),
    "overview of a state": lambda pages, _: pages.overview(state="attention"),
    "pipeline": lambda pages, _: pages.pipeline("pipe"),
}
CONSTANT: Final[Mapping[str, Read]] = {
    "trace": lambda pages, _: pages.trace("part-000001", steps=False),
    "trace of an unknown key": lambda pages, _: pages.trace(LAST, steps=False),
    "held runs": lambda pages, _: pages.held_runs(),
    "held run": lambda pages, run: pages.held_run(run, after=""),
    "held run, last page": lambda pages, run: pages.held_run(run, after=LAST),
}
READS_ALL: Final[Mapping[str, Read]] = {
    "rejected": lambda pages, _: pages.rejected(selection_of({}), after=0),
    "rejected with a filter": lambda pages, _: pages.rejected(selection_of({"reason": "none has it"}), after=0),
    "export": lambda pages, _: list(pages.export(selection_of({})).pages()),
    "drift": lambda pages, _: pages.drift("", after=START),
    "drift, last page": lambda pages, _: pages.drift("", after=(1, LAST)),
}
"""Pages with a total of all rejections, of all entries of a sink, or of the entries that no source explains."""


def _configuration(folder: Path, workspace: str) -> Configuration:
    path = folder / "ingestd.yaml"
    settings = {
        "service": {"url": "http://127.0.0.1:9", "api_key": "test-key"},
        "state": "state.db",
        "pipelines": [
            {
                "name": "pipe",
                "source": {"connector": "directory", "path": "drop"},
                "entries": {"key": "{k}", "value": "{v}"},
                "sink": {"workspace": workspace, "label": "Rig"},
            }
        ],
    }
    path.write_text(json.dumps(settings))  # JSON is YAML
    return read_configuration(path, environment={}, cwd=folder)


async def _prepare(pipeline: CountedPipeline, count: int) -> int:
    """Fill the state file, and return the number of its held run."""
    unusable: list[Row] = [{"k": "", "v": str(number)} for number in range(count)]
    pipeline.script.write("p", [*rows(count), *unusable])
    await pipeline.read_and_deliver()
    held = pipeline.service.store.entries[pipeline.sink]
    for key in list(held):
        held[key] = held[key] | {"value": "theirs"}
    async with pipeline.delivering() as running:
        checker = DriftChecker(
            mirror=pipeline.mirror.delivery,
            drift=pipeline.mirror.drift,
            client=running.client,
            emit=pipeline.events.append,
        )
        await checker.check(pipeline.address, pipelines=["pipe"], mode="report", remove_added=False)
    pipeline.script.write("p", [*rows(count, a="3"), *unusable])
    await asyncio.to_thread(pipeline.read)
    (run,) = pipeline.mirror.status.held_runs()
    assert run.updated == count
    return run.run


def _measured(folder: Path, count: int, work: Work) -> dict[str, int]:
    folder.mkdir()
    with work.uncounted():
        pipeline = CountedPipeline(folder, Work(), script=Script(), guard=Guard(changed_percent=30, minimum=20))
        run = asyncio.run(_prepare(pipeline, count))
        pipeline.close()
    configuration = _configuration(folder, pipeline.workspace)
    pages = PageContents(
        current=lambda: configuration,
        pid=1,
        sources=SourceNotices,
        passes=SourcePasses(),
        waiting=dict,
        next_runs=dict,
        activity=EventCounts().activity,
        entries_at_most=N // 2,
    )
    found: dict[str, int] = {}
    for name, read in {**OVERVIEW, **CONSTANT, **READS_ALL}.items():
        work.reset()
        read(pages, run)
        found[name] = work.counts().get(STEPS_COUNTED, 0)
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[int, int]]:
    folder = tmp_path_factory.mktemp("pages")
    with counting_connections() as work:
        small, large = (_measured(folder / str(count), count, work) for count in (N, 4 * N))
    return {name: (small[name], large[name]) for name in small}


@pytest.mark.parametrize("name", CONSTANT)
def test_a_page_costs_the_same_for_four_times_the_data(measured: Mapping[str, tuple[int, int]], name: str) -> None:
    small, large = measured[name]
    assert large <= 1.25 * small + SLACK, (small, large)


@pytest.mark.parametrize("name", OVERVIEW)
def test_a_page_of_pipelines_reads_no_more_entries(measured: Mapping[str, tuple[int, int]], name: str) -> None:
    small, large = measured[name]
    assert large - small <= STEPS_OF_A_REJECTION * 3 * N + SLACK, (small, large)


@pytest.mark.parametrize("name", READS_ALL)
def test_a_page_with_a_total_reads_everything_once(measured: Mapping[str, tuple[int, int]], name: str) -> None:
    small, large = measured[name]
    assert 0 < small <= large <= RATIO * small, (small, large)
