"""The tutorial: its commands print what it shows."""

from __future__ import annotations

from pathlib import Path

from tests.support.executed_page import run_page, shown_lines
from tests.support.free_port import free_port

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_commands_of_the_tutorial_print_what_it_shows(tmp_path: Path) -> None:
    port = str(free_port())
    text = PAGE.read_text(encoding="utf-8").replace("8400", port)
    # The admin port is the next one, which may be in use.
    output = run_page(text, tmp_path, {"WORKSPACED_SERVE_PORT": port, "WORKSPACED_ADMIN_PORT": "0"})
    shown = shown_lines(text)
    assert shown
    assert [line for line in shown if line not in output] == [], output
    assert ", run 3\n" in output  # the run that the page rolls back
    assert "curl" not in text
