"""Pipelines that would take files away from each other are a mistake of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.registry import connector_class
from ingestd.settings.loader import load_settings


def mistakes(folder: Path, first: str, second: str) -> list[str]:
    """Of two pipelines with these sources, the one on line 4, the other on line 7."""
    path = folder / "ingestd.yaml"
    text = 'service: {url: "http://127.0.0.1:8400", api_key: key}\nstate: state.db\npipelines:\n'
    for name, source in (("mass", first), ("power", second)):
        text += f"  - {{name: {name}, source: {{{source}}},\n     entries: {{key: k, value: v}},\n"
        text += f"     sink: {{workspace: w, label: {name}}}}}\n"
    path.write_text(text)
    try:
        load_settings(path, options_of=connector_class, environment={})
    except ConfigurationError as error:
        return [str(mistake).removeprefix(f"{folder}/") for mistake in error.mistakes]
    return []


KEEP = "connector: directory, path: drop"
ARCHIVE = "connector: directory, path: drop, after: archive, archive: done"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ARCHIVE, KEEP),
        (KEEP, ARCHIVE),
        (ARCHIVE, ARCHIVE),
        (KEEP, "connector: directory, path: drop, after: delete"),
        (ARCHIVE, "connector: directory, path: ./drop/../drop/"),
        (ARCHIVE, "connector: directory, path: link"),
        (KEEP + ", recursive: true", ARCHIVE.replace("path: drop", "path: drop/in")),
        (ARCHIVE + ", pattern: 'run*.csv'", KEEP + ", pattern: '*_A.CSV'"),
        (ARCHIVE, "connector: file, path: drop/budget.csv"),
        (ARCHIVE, "connector: log, path: drop, pattern: 'bench*.csv'"),
        (ARCHIVE, "connector: directory, path: done"),
        (ARCHIVE, "connector: directory, path: done/failed"),
        (KEEP + ", quarantine: bad", "connector: directory, path: bad"),
        (KEEP + ", recursive: true", ARCHIVE.replace("path: drop", "path: other").replace("done", "drop/done")),
    ],
)  # fmt: skip
def test_two_pipelines_of_which_one_takes_or_feeds_the_other_s_files_are_a_mistake(
    tmp_path: Path, first: str, second: str
) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "link").symlink_to("drop")
    (sentence,) = mistakes(tmp_path, first, second)
    assert sentence.startswith("ingestd.yaml:7:")
    assert "'mass' (line 4)" in sentence
    assert "'power' (line 7)" in sentence


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (KEEP, KEEP),
        (ARCHIVE, "connector: directory, path: other, after: archive, archive: done"),
        (ARCHIVE + ", pattern: 'mass*.csv'", KEEP + ", pattern: 'power*.csv'"),
        (ARCHIVE, "connector: directory, path: drop/in"),
        (KEEP + ", recursive: true", ARCHIVE.replace("path: drop", "path: dropped")),
        (ARCHIVE, "connector: file, path: drop/budget.dat"),
        (KEEP, "connector: file, path: drop/budget.csv"),
        (KEEP, "connector: log, path: drop"),
        (ARCHIVE, "connector: directory, path: done/failed, pattern: '*.log'"),
    ],
)
def test_pipelines_that_leave_each_other_s_files_alone_are_none(tmp_path: Path, first: str, second: str) -> None:
    assert mistakes(tmp_path, first, second) == []


def test_the_sentence_names_an_example_and_what_to_do(tmp_path: Path) -> None:
    (sentence,) = mistakes(tmp_path, ARCHIVE + ", pattern: '*.csv'", KEEP + ", pattern: 'run*'")
    assert f"both read files such as {tmp_path}/drop/run.csv, and 'mass' removes files that it has read" in sentence
    assert "Give each pipeline a different folder or pattern, or set after: keep in both." in sentence
