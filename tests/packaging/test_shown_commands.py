"""The commands that the documentation shows exist with their options, and the page about symptoms has true sentences."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import ingestd.cli
import workspaced.cli
from tests.support.executed_page import blocks

ROOT = Path(__file__).parents[2]
PROGRAMS: dict[str, click.Command] = {"ingestd": ingestd.cli.main, "workspaced": workspaced.cli.main}
TROUBLESHOOTING = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")


def shown_commands(page: str) -> list[str]:
    """Return the lines of a page's commands that call one of the programs, without prompt."""
    shown = "\n".join((*blocks(page, "sh"), *blocks(page, "console")))
    lines = [line.strip().removeprefix("$ ") for line in shown.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.partition(" ")[0] in PROGRAMS]


def find_command(line: str) -> tuple[click.Context, list[str]]:
    """Return the context of a command line's command and the words after its name.

    click keeps the help option that a command has in its first context, so each context has its parent and settings.

    Raises:
        AssertionError: there is no such command.
        click.UsageError: an option before the command is wrong.
    """
    name, *words = shlex.split(re.split(r" (?:\d?[>|&<])|#", line)[0])
    context = click.Context(PROGRAMS[name], **PROGRAMS[name].context_settings)
    while isinstance(group := context.command, click.Group):
        _, rest, _ = group.make_parser(context).parse_args(list(words))
        if not rest:
            break
        found = group.get_command(context, rest[0])
        assert found is not None, line
        context, words = click.Context(found, parent=context, **found.context_settings), rest[1:]
    return context, words


def parse_command(line: str) -> None:
    """Parse a command line as its program does, without running it.

    Raises:
        AssertionError: there is no such command.
        click.UsageError: an argument or option is wrong.
    """
    context, words = find_command(line)
    if not isinstance(context.command, click.Group):
        context.command.make_context(context.command.name, words, parent=context.parent)


def test_every_shown_command_exists_with_its_options() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    commands = [(path, line) for path in pages for line in shown_commands(path.read_text(encoding="utf-8"))]
    assert len(commands) > 120
    for path, line in commands:
        try:
            parse_command(line)
        except click.UsageError as error:
            raise AssertionError(f"{path.relative_to(ROOT)}: {line}: {error.format_message()}") from None


def test_every_command_in_a_sentence_exists_with_its_options() -> None:
    checked = 0
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for line in re.findall(r"`((?:ingestd|workspaced) [a-z][^`\n]*)`", path.read_text(encoding="utf-8")):
            context, words = find_command(line)
            known = {
                name for parameter in context.command.params for name in (*parameter.opts, *parameter.secondary_opts)
            }
            unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - known - {"--help"}
            assert not unknown, f"{path.relative_to(ROOT)}: {line}"
            checked += 1
    assert checked > 250


@pytest.mark.parametrize("line", ["ingestd why", "ingestd status --all", "workspaced keys create a --role boss"])
def test_a_command_with_a_wrong_option_or_argument_is_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse_command(line)


def test_each_of_30_symptoms_has_a_command() -> None:
    entries = re.split(r"^### ", TROUBLESHOOTING, flags=re.MULTILINE)[1:]
    assert len(entries) >= 30
    assert [entry.partition("\n")[0] for entry in entries if not shown_commands(entry)] == []


def test_each_quoted_output_of_a_symptom_is_in_the_code() -> None:
    quoted = re.findall(r'^- "([^"]+)"', TROUBLESHOOTING, re.MULTILINE)
    assert len(quoted) > 40
    sources = (path for package in ("ingestd", "connectors") for path in (ROOT / package).rglob("*.py"))
    # A sentence may be several adjacent literals.
    code = "\n".join(re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8")) for path in sources)
    assert [text for text in quoted if text not in code] == []
