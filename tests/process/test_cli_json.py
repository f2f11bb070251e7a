"""`--json` of every reading command: the output parses, has the documented members, and contains what the text says."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import environment
from tests.support.engineering_folder import Folder, OtherProgram, program_beside_document_server
from tests.unit.ingestd.cli.test_commands import READING

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
CASES = """cases:
  - {name: right, pipeline: budget, rows: [{part: A, mass: 0.30}], entries: [{key: A.mass, value: 0.30}]}
  - {name: wrong, pipeline: budget, rows: [{part: A, mass: 0.30}], entries: [{key: A.mass, value: 7}]}
"""
WORDS = {
    "check": ["--offline"],
    "doctor": [],
    "test": [],
    "plan": [],
    "status": [],
    "why": ["budget.csv"],
    "trace": ["00417.mass"],
    "rejected list": [],
    "rejected show": ["--pipeline", "budget"],
    "drift": [],
    "cursor show": ["budget"],
    "rollback": ["--since", "2000-01-01", "--dry-run"],
}


def documented() -> dict[str, tuple[str, set[str]]]:
    table = PAGE.read_text(encoding="utf-8").partition("<!-- json: begin -->")[2].partition("<!-- json: end -->")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (.*?) \|(?: <!--.*)?$", table, re.MULTILINE)
    return {name: (form, set(re.findall(r"`(\w+)`", members))) for name, form, members in rows}


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of a document, also those of its members' names."""
    match value:
        case dict():
            for name, item in value.items():
                yield name
                yield from texts(item)
        case list():
            for item in value:
                yield from texts(item)
        case str():
            yield value
        case int() | float():
            yield str(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """Delivered, changed by others, and rejected entries; a file with another column; and a case that fails."""
    with program_beside_document_server() as service:
        yield scene(tmp_path_factory.mktemp("json"), service)


def scene(path: Path, service: OtherProgram) -> Folder:
    made = Folder(path, service)
    (path / "tests.yaml").write_text(CASES, encoding="utf-8")
    made.write("part,mass\n00417,0.10\n,2\n")
    assert made.here("sync").returncode == 3
    service.change("00417.mass", "0.11")
    service.add("note by Ada", "9")
    made.write("part,mass\n00417,0.10\n,2\n00419,3\n")
    return made


@pytest.mark.parametrize("name", sorted(READING))
def test_the_json_of_a_command_parses_and_contains_what_the_text_says(folder: Folder, name: str) -> None:
    text = folder.here(*name.split(), *WORDS[name])
    run = folder.here(*name.split(), *WORDS[name], "--json")
    assert run.returncode == text.returncode, run.stderr
    form, members = documented()[name]
    found = [json.loads(line) for line in run.stdout.splitlines()] if form == "lines" else json.loads(run.stdout)
    objects = [found] if form == "object" else found
    assert isinstance(found, dict if form == "object" else list)
    assert objects
    assert all(isinstance(one, dict) and members == set(one) for one in objects)
    said = list(texts(found))
    names = re.findall(r"budget(?:\.csv)?\b|004\d\d\.mass|no '\w+'|'\w+' is empty|note by Ada|Bench", text.stdout)
    assert names, "the text names what it is about"
    assert all(any(one in part for part in said) for one in names)


def test_the_sentences_of_check_doctor_and_why_are_those_of_the_text(folder: Folder) -> None:
    for words in (["check", "--offline"], ["doctor"]):
        lines = [json.loads(line) for line in folder.here(*words, "--json").stdout.splitlines()]
        printed = folder.here(*words).stdout.splitlines()
        made = [f"{one['outcome']:<8}{one['subject']} · {one['step']}: {one['sentence']}" for one in lines]
        assert [re.sub(r"\d+", "N", one) for one in made] == [re.sub(r"\d+", "N", one) for one in printed]
    (one,) = json.loads(folder.here("why", "budget.csv", "--json").stdout)
    assert f"{one['sentence']}\n" == folder.here("why", "budget.csv").stdout
    unknown = folder.here("why", "nothing.csv", "--json")
    assert (unknown.returncode, json.loads(unknown.stdout)) == (1, [])


def test_the_failed_case_of_a_test_has_its_differences(folder: Folder) -> None:
    right, wrong = json.loads(folder.here("test", "--json").stdout)["cases"]
    assert (right["outcome"], right["differences"]) == ("passed", [])
    assert wrong["outcome"] == "failed"
    (difference,) = wrong["differences"]
    assert (wrong["name"], difference["line"]) == ("wrong", 3)
    assert f"{wrong['file']}:3: {difference['sentence']}" in folder.here("test").stdout


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}])
def test_no_color_disables_colours_on_a_terminal(folder: Folder, variables: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ingestd", "check", "--configuration-only", "-c", str(folder.config)]
    env = {name: value for name, value in environment(folder.path, TERM="xterm").items() if name != "NO_COLOR"}
    with subprocess.Popen(command, env={**env, **variables}, stdin=theirs, stdout=theirs, stderr=theirs) as check:
        os.close(theirs)
        screen = b""
        while chunk := read(ours):
            screen += chunk
        assert check.wait(30) == 0
    os.close(ours)
    assert b"passed" in screen
    assert (b"\x1b[" in screen) == (not variables)


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux reports this when the other side is closed
        return b""
