"""The output of `--help` is compared with golden files, so that a changed sentence appears in a review.

INGESTD_WRITE_GOLDEN=1 rewrites the files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ingestd.cli import main
from ingestd.cli.app import DaemonVerbs
from scripts.docs_site.command_tree import iter_commands
from workspaced.cli import main as service

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


def helped(*verb: str) -> str:
    result = CliRunner().invoke(main, [*verb, "--help"], prog_name="ingestd", terminal_width=100)
    assert result.exit_code == 0
    return result.output


HELP_MODULES = {
    "ingestd",
    "ingestd.cli",
    "ingestd.cli.app",
    "ingestd.core",
    "ingestd.core.errors",
    "ingestd.core.phrases",
    "ingestd.daemon",
    "ingestd.daemon.control",
    "ingestd.daemon.control.refusal",
    "ingestd.daemon.exit_codes",
    "ingestd.process",
    "ingestd.process.cycle_collection",
    "ingestd.process.deferred_imports",
    "ingestd.process.redaction",
    "ingestd.process.standard_streams",
    "ingestd.process.terminal_text",
    "ingestd.process.utf8_mode",
    "ingestd.process.verbs",
}
HELPS = [ctx.command_path.removeprefix("ingestd").strip() for _, ctx in iter_commands(main, "ingestd")]


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


def test_the_list_of_verbs_has_the_beginning_of_each_help() -> None:
    for group in (main, service):
        for verb, line in group.verbs.items():
            command = group.get_command(click.Context(group), verb)
            assert command is not None
            assert " ".join((command.help or "").split()).startswith(line.removesuffix("."))


@pytest.mark.parametrize("program", ["ingestd", "workspaced"])
def test_help_imports_none_of_the_packages_that_do_the_work(program: str) -> None:
    script = f"import sys\nfrom {program}.cli import main\nmain(['--help'], standalone_mode=False)\nprint(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert {name for name in loaded if name.split(".")[0] == "ingestd"} <= HELP_MODULES
    assert loaded.isdisjoint({"polars", "pydantic", "httpx", "structlog", "ruamel", "msgspec", "asyncio"})
