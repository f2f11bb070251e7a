"""Lines for a terminal."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from ingestd.process import terminal_text
from ingestd.process.redaction import mask_secrets
from ingestd.process.terminal_text import aligned, echo, safe_line, terminal_line


def test_control_characters_are_escapes_and_letters_are_unchanged() -> None:
    assert terminal_line("a\x1b[2Jb\nc\u202e \N{GREEK SMALL LETTER MU}g") == r"a\x1b[2Jb\nc\u202e μg"


def test_a_secret_with_a_control_character_is_masked_before_that_becomes_an_escape() -> None:
    mask_secrets(["plan\tted-7351"])
    assert safe_line("refused: plan\tted-7351\x07") == r"refused: ***\x07"


def test_what_a_command_prints_can_not_act_on_a_terminal_and_json_stays_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"name": "a\x1b[2J\x9b31m\u202etxt.exe\U000e0001\t"}
    echo(json.dumps(value, ensure_ascii=False, indent=2))
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed) == value


def test_every_command_prints_by_that_function() -> None:
    root = Path(terminal_text.__file__).parents[2]
    printing = [
        f"{path.relative_to(root)}:{node.lineno}"
        for folder in ("ingestd/cli", "workspaced/cli")
        for path in sorted((root / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "click.echo"}
    ]
    assert [place for place in printing if not place.startswith("workspaced/cli/failure.py")] == []


def test_a_table_has_its_cells_in_columns_without_space_at_the_end_of_a_line() -> None:
    assert list(aligned([["ID", "LABEL"], ["17", "Rover mission"], ["4", ""]])) == [
        "ID  LABEL",
        "17  Rover mission",
        "4",
    ]
    assert list(aligned([])) == []
