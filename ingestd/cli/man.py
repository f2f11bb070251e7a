"""`ingestd man`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib.metadata import version

import click

from ingestd.cli.command_tree import iter_commands

_FILES = (
    ("./ingestd.yaml", "The configuration, if neither -c nor INGESTD_CONFIG names another file."),
    ("/etc/ingestd/ingestd.yaml", "The configuration if there is no ./ingestd.yaml."),
)
_VARIABLES = (
    ("INGESTD_CONFIG", "The configuration file, if -c names none."),
    ("NO_COLOR", "Any value disables colours."),
)


@click.command()
@click.pass_context
def man(ctx: click.Context) -> None:
    """Print the manual page of ingestd with all commands.

    Example: ingestd man > /usr/local/share/man/man1/ingestd.1
    """
    click.echo("\n".join(_page(ctx.find_root().command)))


def _page(program: click.Command) -> Iterator[str]:
    root, *commands = iter_commands(program, "ingestd")
    purpose, *rest = _paragraphs(program)
    yield f'.TH INGESTD 1 "" "ingestd {version("ingestd")}" "User Commands"'
    yield from (".SH NAME", f"ingestd \\- {_escaped(purpose.removesuffix('.'))}")
    yield from (".SH SYNOPSIS", _usage(*root), ".SH DESCRIPTION")
    yield from _text(rest)
    yield from _options(*root)
    yield ".SH COMMANDS"
    for command, ctx in commands:
        yield f'.SS "{_escaped(ctx.command_path)}"'
        yield from (_usage(command, ctx), ".PP")
        yield from _text(_paragraphs(command))
        yield from _options(command, ctx)
    for title, rows in (("ENVIRONMENT", _VARIABLES), ("FILES", _FILES)):
        yield f".SH {title}"
        for name, text in rows:
            yield from _item(name, text)


def _paragraphs(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").split("\n\n")


def _text(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield ".PP"
        if paragraph.startswith("\b"):  # click's mark of lines that are not rewrapped
            yield ".nf"
            yield from map(_escaped, paragraph.splitlines()[1:])
            yield ".fi"
        else:
            yield from map(_escaped, paragraph.splitlines())


def _usage(command: click.Command, ctx: click.Context) -> str:
    return f"\\fB{_escaped(ctx.command_path)}\\fR {_escaped(' '.join(command.collect_usage_pieces(ctx)))}"


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            yield from _item(*record)


def _item(name: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_escaped(name)}\\fR", _escaped(text))


def _escaped(text: str) -> str:
    """Return a text as one line of roff: a backslash, a hyphen, and a dot or quote at the beginning have a meaning there."""
    line = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{line}" if line.startswith((".", "'")) else line
