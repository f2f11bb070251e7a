"""Names of files and values of records with control characters: no command passes them to the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.engineering_folder import Folder, OtherProgram, program_beside_document_server

TITLE = "\x1b]0;title\x07\x9b31m\u202e"
"""Sets the title of a terminal, its colour by a control character of one byte, and the direction of the text."""
NAME = f"run{TITLE}\nforged.csv"


def assert_printable(output: str) -> None:
    assert output.replace("\n", "").isprintable(), ascii(output)
    assert not any(line.startswith("forged.csv") for line in output.splitlines())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    service: OtherProgram
    with program_beside_document_server() as service:
        folder = Folder(tmp_path_factory.mktemp("characters"), service)
        folder.write(f"part,mass\na{TITLE},1{TITLE}\n,2{TITLE}\n", NAME)
        done = folder.here("sync")
        assert done.returncode == 3
        assert "2 records read" in done.stdout
        assert_printable(done.stdout + done.stderr)
        # What the next sync would read.
        folder.write(f"part,mass\nb{TITLE},1{TITLE}\n", NAME)
        folder.write(f"part,mass\nc{TITLE},1{TITLE}\n,2{TITLE}\n", f"plan{TITLE}\nforged.csv")
        yield folder


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("why", NAME),
        ("why", f"no{TITLE}.csv"),
        ("trace", f"a{TITLE}.mass"),
        ("trace", f"no{TITLE}"),
        ("rejected", "list"),
        ("rejected", "show", "1"),
        ("cursor", "show", "budget"),
        ("check",),
        ("drift",),
        ("top", "--once"),
    ],
    ids=lambda words: " ".join(words).partition("\x1b")[0],
)
def test_no_control_character_reaches_the_terminal(folder: Folder, words: tuple[str, ...]) -> None:
    done = folder.here(*words)
    assert_printable(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "words",
    [("status",), ("why", NAME), ("trace", f"a{TITLE}.mass"), ("cursor", "show", "budget"), ("plan",)],
    ids=lambda words: words[0],
)
def test_json_has_the_exact_names_and_no_control_character(folder: Folder, words: tuple[str, ...]) -> None:
    done = folder.here(*words, "--json")
    assert_printable(done.stdout)
    assert NAME in texts_of(json.loads(done.stdout))


def texts_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {text for item in (*value, *value.values()) for text in texts_of(item)}
    if isinstance(value, list):
        return {text for item in value for text in texts_of(item)}
    return {value} if isinstance(value, str) else set()


def test_a_plan_and_the_lines_of_a_sync_have_no_control_character(folder: Folder) -> None:
    done = folder.here("plan")
    assert "would create 2" in done.stdout
    assert_printable(done.stdout + done.stderr)


@pytest.mark.parametrize("words", [("status",), ("why", NAME), ("rejected", "list")], ids=lambda words: words[0])
def test_the_characters_are_shown_as_escapes(folder: Folder, words: tuple[str, ...]) -> None:
    assert r"run\x1b]0;title\x07\x9b31m\u202e\nforged.csv" in folder.here(*words).stdout
