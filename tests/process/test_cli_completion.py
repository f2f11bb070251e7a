"""`completion` and `man` of both programs: a real bash completes, and groff formats the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingestd.cli import main
from ingestd.process.command_tree import iter_commands
from workspaced.cli import main as service

BINARIES = Path(sys.executable).parent


def completed(words: str) -> list[str]:
    """Return the completions of bash for the last of the words, by the function that the script defines."""
    script = """
        program=${1%% *}
        eval "$($program completion bash)"
        COMP_WORDS=($1); [ "${1% }" = "$1" ] || COMP_WORDS+=('')
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        complete -p $program >/dev/null || exit 1
        _${program}_completion $program
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script, "bash", words], env=env, capture_output=True, text=True, check=True)
    assert not run.stderr
    return run.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ingestd re", {"rejected", "reload", "restore"}),
        ("ingestd rejected ", {"drop", "export", "list", "retry", "show"}),
        ("ingestd rejected list --fi", {"--file"}),
        ("ingestd completion ", {"bash", "fish", "zsh"}),
        ("ingestd run --log-level e", {"error"}),
        ("workspaced ", {"backup", "completion", "keys", "man", "serve"}),
        ("workspaced keys create x --role o", {"owner"}),
    ],
)
def test_bash_completes_commands_options_and_choices(words: str, expected: set[str]) -> None:
    found = completed(words)
    assert expected <= set(found)
    assert all(one.startswith(words.rpartition(" ")[2]) for one in found)


def test_the_verbs_are_completed_without_importing_any() -> None:
    script = (
        "import sys\nfrom click.shell_completion import BashComplete\nfrom ingestd.cli import main\n"
        "found = BashComplete(main, {}, 'ingestd', '_INGESTD_COMPLETE').get_completions([], 's')\n"
        "print(sorted(one.value for one in found))\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    verbs, modules = run.stdout.splitlines()
    assert "'status'" in verbs
    assert not [
        name for name in modules.split() if name.startswith(("ingestd.cli.", "polars")) and name != "ingestd.cli.app"
    ]


PROGRAMS = {"ingestd": main, "workspaced": service}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("shell", "registration"), [("zsh", "compdef"), ("fish", "complete --no-files")])
def test_the_scripts_of_zsh_and_fish_are_those_of_click(name: str, shell: str, registration: str) -> None:
    script = CliRunner().invoke(PROGRAMS[name], ["completion", shell]).output
    assert f"_{name.upper()}_COMPLETE={shell}_complete" in script
    assert registration in script


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_manual_page_has_every_command_and_option(name: str) -> None:
    page = CliRunner().invoke(PROGRAMS[name], ["man"]).output
    for command, ctx in iter_commands(PROGRAMS[name], name):
        assert f"\\fB{ctx.command_path}\\fR".replace("-", "\\-") in page
        for parameter in command.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                assert record[0].replace("-", "\\-") in page
    assert page.splitlines()[0].startswith(f".TH {name.upper()} 1")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing: install Debian's package groff-base")
@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        (
            "ingestd",
            [
                "ingestd - Keep the data sinks of an engineering data workspace equal to files",
                "Example: ingestd check --offline",
                'eval "$(ingestd completion bash)"',
            ],
        ),
        (
            "workspaced",
            [
                "workspaced - The workspace service",
                "Create a key for NAME and print it.",
                'eval "$(workspaced completion bash)"',
                "DATA/workspaced.db The SQLite database in the data folder.",
            ],
        ),
    ],
)
def test_groff_formats_the_manual_page_without_a_warning(name: str, sentences: list[str]) -> None:
    page = CliRunner().invoke(PROGRAMS[name], ["man"]).output
    run = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou"], input=page, capture_output=True, text=True, check=True
    )
    assert not run.stderr
    text = re.sub(r"\s+", " ", run.stdout)
    assert [one for one in sentences if one not in text] == []
