"""A reload renames a pipeline while a page is built: the page shows one configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.source_passes import SourcePasses
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.web.event_counts import EventCounts
from ingestd.web.pages import PageContent, PageContents, selection_of

PAGES: Final[Mapping[str, Callable[[PageContents], PageContent]]] = {
    "overview": lambda pages: pages.overview(),
    "pipeline": lambda pages: pages.pipeline("former"),
    "drift": lambda pages: pages.drift("former"),
    "rejected": lambda pages: pages.rejected(selection_of({}), after=0),
    "trace": lambda pages: pages.trace("key", steps=True),
}


def configured(folder: Path, name: str) -> Configuration:
    pipeline = {
        "name": name,
        "source": {"connector": "directory", "path": "drop"},
        "entries": {"key": "{part}", "value": "{mass}"},
        "sink": {"workspace": "Bench", "label": "Rig"},
    }
    path = folder / f"{name}.yaml"
    service = {"url": "http://127.0.0.1:9", "api_key": "test-key"}
    path.write_text(json.dumps({"service": service, "state": "state.db", "pipelines": [pipeline]}))  # JSON is YAML
    return read_configuration(path, environment={}, cwd=folder)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_takes_the_configuration_once(tmp_path: Path, name: str) -> None:
    former, present = configured(tmp_path, "former"), configured(tmp_path, "present")
    with closing(SqliteMirror.open(former.settings.state)) as mirror:
        mirror.intake.activate(["former"])
    configurations = iter([former, *[present] * 9])
    pages = PageContents(
        current=lambda: next(configurations),
        pid=1,
        sources=SourceNotices,
        passes=SourcePasses(),
        waiting=dict,
        next_runs=dict,
        activity=EventCounts().activity,
    )
    PAGES[name](pages)
    assert len(list(configurations)) == 9
