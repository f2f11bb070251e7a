"""The steps of the interpreter for the overview over a growing number of pipelines, each with notices and a file that waits."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Final

from ingestd.core.address import SinkAddress
from ingestd.core.record import NOTICE, Partition
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.source_passes import SourcePasses
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.port import Snapshot
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.web.event_counts import EventCounts
from ingestd.web.pages import PageContents
from tests.contract.mirror_intake import entries, hashes
from tests.support.work_counter import RATIO, Work, counting_instructions

N: Final = 50


def _configuration(folder: Path, count: int) -> Configuration:
    pipelines = [
        {
            "name": f"p{number}",
            "source": {"connector": "directory", "path": f"drop/{number}"},
            "entries": {"key": "{k}", "value": "{v}"},
            "sink": {"workspace": "Rover", "label": f"Rig {number}"},
        }
        for number in range(count)
    ]
    settings = {
        "service": {"url": "http://127.0.0.1:9", "api_key": "test-key"},
        "state": "state.db",
        "pipelines": pipelines,
    }
    path = folder / "ingestd.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return read_configuration(path, environment={}, cwd=folder)


def _fill(configuration: Configuration) -> None:
    with closing(SqliteMirror.open(configuration.settings.state)) as mirror:
        mirror.intake.activate([one.name for one in configuration.settings.pipelines])
        for pipeline in configuration.settings.pipelines:
            address = SinkAddress(workspace="Rover", by="label", name=pipeline.sink.name)
            state = mirror.intake.open_partition(pipeline.name, Partition(name="p"), address, "d")
            run = mirror.intake.begin_run(state.id, snapshot=True, whole=True)
            rows = [("a", "1")]
            mirror.intake.commit(
                run, entries=entries(rows), records=1, rejects=(), cursor={}, facts={NOTICE: "It was guessed."}
            )
            mirror.intake.finish_run(run, cursor={}, seen=Snapshot(hashes=RowHashes.of(hashes(rows))), deletes="keep")


def _steps(folder: Path, count: int) -> int:
    folder.mkdir()
    configuration = _configuration(folder, count)
    _fill(configuration)
    names = [one.name for one in configuration.settings.pipelines]
    sources = SourceNotices(
        notices=tuple(OperatorNotice(pipeline=name, sentence="It is polled.") for name in names),
        waiting={name: {"unstable": 1} for name in names},
    )
    pages = PageContents(
        current=lambda: configuration,
        pid=1,
        sources=lambda: sources,
        passes=SourcePasses(),
        waiting=dict,
        next_runs=dict,
        activity=EventCounts().activity,
    )
    pages.overview()
    with counting_instructions(work := Work()):
        content = pages.overview()
    rows = content.values["rows"]
    assert [(row.waiting, len(row.notices)) for row in rows] == [({"unstable": 1}, 2)] * count
    return sum(work.counts().values())


def test_the_overview_of_four_times_as_many_pipelines_needs_about_four_times_the_steps(tmp_path: Path) -> None:
    small, large = _steps(tmp_path / "small", N), _steps(tmp_path / "large", 4 * N)
    assert large <= RATIO * small, (small, large)
