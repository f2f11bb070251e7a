"""Rules for all commands: examples in every help, `--json` at every command that reads."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from ingestd.cli import main
from scripts.docs_site.command_tree import iter_commands

COMMANDS = {ctx.command_path: command for command, ctx in iter_commands(main, "ingestd")}
CHANGING = {
    "approve", "backfill", "backup", "connector check", "connector new", "cursor reset", "cursor rewind",
    "cursor set", "demo", "discard", "init", "install-units", "pause",
    "rejected drop", "rejected retry", "reload", "restore", "resume", "run",
    "standby promote", "standby step-down", "support-bundle", "sync",
}  # fmt: skip
OTHER_FORMAT = {
    "database sql": "SQL for an administrator",
    "rejected export": "CSV or NDJSON, with an option of its own",
    "schema": "always JSON",
    "standby status": "JSON, but only with a daemon that runs with --standby, as in tests/process/test_standby.py",
    "top": "a view of 'status --json' for people",
}
READING = {
    name
    for path, command in COMMANDS.items()
    if not isinstance(command, click.Group) and (name := path.removeprefix("ingestd ")) not in CHANGING
} - set(OTHER_FORMAT)


def test_every_reading_command_has_the_option_json() -> None:
    without = {
        name
        for name in READING
        if not any("--json" in parameter.opts for parameter in COMMANDS[f"ingestd {name}"].params)
    }
    assert not without
    assert {f"ingestd {name}" for name in CHANGING | set(OTHER_FORMAT)} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_has_examples_that_the_command_line_accepts(path: str) -> None:
    text = " ".join((COMMANDS[path].help or "").split())
    examples = re.findall(r"Example: (ingestd .*?)(?= Example: |$)", text)
    assert examples
    for example in examples:
        words = shlex.split(re.split(r" [>|]", example)[0])
        named = next(" ".join(words[:n]) for n in range(len(words), 0, -1) if " ".join(words[:n]) in COMMANDS)
        assert named.startswith(path)
        # With the settings of the whole command line, because click keeps the first help option of a command.
        COMMANDS[named].make_context(named, words[len(named.split()) :], **COMMANDS["ingestd"].context_settings)
