"""Names of files and values of records with control characters: no command passes them to the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engineering_folder import Folder, OtherProgram, program_beside_document_server

TITLE = "\x1b]0;title\x07"
"""Sets the title of a terminal; other sequences write to the clipboard or move the cursor."""
NAME = f"run{TITLE}\nforged.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    service: OtherProgram
    with program_beside_document_server() as service:
        folder = Folder(tmp_path, service)
        folder.write(f"part,mass\na{TITLE},1{TITLE}\n,2{TITLE}\n", NAME)
        assert folder.here("sync").returncode == 3
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
    shown = (done.stdout + done.stderr).replace("\n", "")
    assert shown.isprintable(), shown
    assert not any(line.startswith("forged.csv") for line in done.stdout.splitlines())


@pytest.mark.parametrize("words", [("status",), ("why", NAME), ("rejected", "list")], ids=lambda words: words[0])
def test_the_characters_are_shown_as_escapes(folder: Folder, words: tuple[str, ...]) -> None:
    assert r"run\x1b]0;title\x07\nforged.csv" in folder.here(*words).stdout
