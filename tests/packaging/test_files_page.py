"""The examples on the page about files can be loaded, and have the described effect."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.directory.readiness.registry import ConfiguredRule
from connectors.file import FileOptions
from connectors.log import LogOptions
from ingestd.sdk import SourceContext

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
LOG = PAGE.partition("## Files that only grow")[2].partition("\n## ")[0]
FILE = PAGE.partition("## One file that people keep open")[2].partition("\n## ")[0]
SOURCES = re.findall(r"```yaml\n(connector: directory\n.*?)```", PAGE, re.DOTALL)
WORKED = re.findall(r"```yaml\n(connector: directory\n[^`]*)```\n\n```sh\n(.*?)```", PAGE, re.DOTALL)
RUN = "part,mass\nA,0.10\nB,2\n"


def options_of(text: str) -> DirectoryOptions:
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert found.pop("connector") == "directory"
    return DirectoryOptions.model_validate(found)


def kinds() -> list[str]:
    union = ConfiguredRule.__origin__.__args__  # type: ignore[attr-defined]
    return [str(kind.model_fields["type"].default) for kind in union]


@pytest.mark.parametrize("text", SOURCES)
def test_every_example_can_be_loaded(text: str) -> None:
    assert options_of(text).path.name


def test_every_rule_has_a_worked_example_and_every_option_is_named() -> None:
    shown = [rule.type for text, _ in WORKED for rule in options_of(text).rules]
    assert sorted(shown) == sorted(kinds())
    assert [name for name in DirectoryOptions.model_fields if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(("name", "section", "options"), [("log", LOG, LogOptions), ("file", FILE, FileOptions)])
def test_every_option_of_a_log_or_file_is_named_and_its_example_loaded(
    name: str, section: str, options: type[BaseModel]
) -> None:
    assert [option for option in options.model_fields if f"`{option}`" not in section] == []
    (example,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    settings = YAML(typ="safe", pure=True).load(io.StringIO(example))
    assert settings.pop("connector") == name
    assert options.model_validate(settings).model_fields_set == set(settings)


class Shell:
    """Runs lines one after the other, as a user at a prompt does."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["sh"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, line: str) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{line}\necho done $?\n")
        stdin.flush()
        assert stdout.readline() == "done 0\n", line

    def close(self) -> None:
        self._process.communicate("", timeout=10)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    running = Shell(tmp_path)
    yield running
    running.close()


@pytest.mark.parametrize(("text", "lines"), WORKED, ids=[options_of(text).rules[0].type for text, _ in WORKED])
def test_a_worked_example_is_ready_after_its_last_line_and_not_before(
    tmp_path: Path, shell: Shell, text: str, lines: str
) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "run.csv").write_text(RUN)
    (tmp_path / "run.json").write_text('[{"part": "A", "mass": 0.10}, {"part": "B", "mass": 2}]')
    context = SourceContext(pipeline="page", base=tmp_path, now=lambda: 4e9)
    connector = DirectoryConnector(options_of(text), context)
    *before, last = lines.splitlines()
    for line in before:
        shell.run(line)
        assert list(connector.partitions()) == [], line
    shell.run(last)
    ready = list(connector.partitions())
    assert ready
    for partition in ready:
        assert sum(batch.records.height for batch in connector.read(partition, None)) == 2
