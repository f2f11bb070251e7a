"""The output of `--help` is compared with golden files, so that a changed sentence appears in a review.

INGESTD_WRITE_GOLDEN=1 rewrites the files.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingestd.cli import main
from ingestd.cli.app import DaemonVerbs
from ingestd.cli.cursor import cursor
from ingestd.cli.rejected import rejected

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


def helped(*verb: str) -> str:
    result = CliRunner().invoke(main, [*verb, "--help"], prog_name="ingestd", terminal_width=100)
    assert result.exit_code == 0
    return result.output


HELPS = [
    "",
    *DaemonVerbs.verbs,
    *(f"rejected {name}" for name in sorted(rejected.commands)),
    *(f"cursor {name}" for name in sorted(cursor.commands)),
]


@pytest.mark.parametrize("verb", HELPS)
def test_help_equals_the_golden_file(verb: str) -> None:
    golden = GOLDEN / f"{verb.replace(' ', '-') or 'ingestd'}.txt"
    text = helped(*verb.split())
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_verb_is_listed_and_has_a_golden_file() -> None:
    assert all(f"\n  {verb} " in helped() for verb in DaemonVerbs.verbs)
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {verb.replace(" ", "-") or "ingestd" for verb in HELPS}


def test_an_unknown_verb_is_reported() -> None:
    result = CliRunner().invoke(main, ["synch"], prog_name="ingestd")
    assert result.exit_code == 2
    assert "No such command 'synch'" in result.output
