"""An unknown command of either program has an error that names the nearest one."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

import ingestd.cli
import workspaced.cli
from scripts.docs_site.command_tree import iter_commands


@pytest.mark.parametrize(
    ("program", "words", "hint"),
    [
        (ingestd.cli.main, ["stat"], " Did you mean 'status'?"),
        (ingestd.cli.main, ["validate"], " Did you mean 'check'?"),
        (ingestd.cli.main, ["qqqq"], ""),
        (workspaced.cli.main, ["kys"], " Did you mean 'keys'?"),
        (workspaced.cli.main, ["start"], " Did you mean 'serve'?"),
    ],
)
def test_an_unknown_command_has_an_error_with_the_nearest_one(
    program: click.Group, words: list[str], hint: str
) -> None:
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"There is no command '{words[0]}'.{hint}\n")


@pytest.mark.parametrize("program", [ingestd.cli.main, workspaced.cli.main])
def test_the_words_of_other_programs_name_commands_that_exist(program: ingestd.cli.app.DaemonVerbs) -> None:
    assert set(program.elsewhere.values()) <= set(program.verbs)
    assert not set(program.elsewhere) & set(program.verbs)


def test_a_mistaken_option_is_reported_as_an_option() -> None:
    assert "No such option" in CliRunner().invoke(ingestd.cli.main, ["--confg"]).stderr


def test_every_list_of_workspaced_has_a_form_for_programs() -> None:
    commands = {ctx.command_path: command for command, ctx in iter_commands(workspaced.cli.main, "workspaced")}
    lists = {path: command for path, command in commands.items() if path.endswith(" list")}
    assert len(lists) >= 3
    assert not [path for path, one in lists.items() if not any("--json" in option.opts for option in one.params)]
