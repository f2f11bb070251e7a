"""Pipelines that read the same files by the same patterns are a mistake in the configuration, if one of them removes files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.registry import connector_class
from ingestd.settings.loader import load_settings


def mistakes(folder: Path, first: str, second: str) -> list[str]:
    """Return the mistakes of two pipelines with these sources, the one on line 4, the other on line 7."""
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
        (ARCHIVE + ", pattern: ['*.csv', 'run*']", KEEP + ", pattern: ['run*', '*.csv']"),
        (ARCHIVE + ", pattern: budget.csv", "connector: file, path: drop/budget.csv"),
    ],
)
def test_equal_sources_are_a_mistake_if_one_removes_files(tmp_path: Path, first: str, second: str) -> None:
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
        (ARCHIVE + ", pattern: 'run*.csv'", KEEP + ", pattern: '*_A.CSV'"),
        (ARCHIVE, "connector: directory, path: done"),
    ],
)
def test_other_sources_are_no_mistake(tmp_path: Path, first: str, second: str) -> None:
    assert mistakes(tmp_path, first, second) == []


def test_the_message_has_the_folder_and_the_next_step(tmp_path: Path) -> None:
    (sentence,) = mistakes(tmp_path, ARCHIVE, KEEP)
    assert f"read the same files of {tmp_path}/drop, and 'mass' removes files that it has read." in sentence
    assert "Give each pipeline a different folder or pattern, or set after: keep in both." in sentence
