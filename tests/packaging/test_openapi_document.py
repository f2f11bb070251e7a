from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from workspaced.cli import main

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_committed_document_equals_the_served_one() -> None:
    # contract G23
    printed = CliRunner().invoke(main, ["openapi"], env={"WORKSPACED_DOCS": None}, catch_exceptions=False)
    assert printed.exit_code == 0
    same = printed.output == COMMITTED.read_text(encoding="utf-8")
    assert same, "docs/openapi.json is not what the service serves: run `make openapi`, and commit it with the change."
