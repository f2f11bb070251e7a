"""The verb `man` of both programs: a manual page, made from the help of the commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import click

from ingestd.process.command_tree import iter_commands

Rows: TypeAlias = Sequence[tuple[str, str]]
"""Names with their meanings."""


def man_command(name: str, version: str, *, variables: Rows, files: Rows) -> click.Command:
    """Return the command that prints the manual page of a program with all of its commands."""

    @click.command(
        "man",
        help=f"Print the manual page of {name} with all commands.\n\n"
        f"Example: {name} man > /usr/local/share/man/man1/{name}.1",
    )
    @click.pass_context
    def man(ctx: click.Context) -> None:
        page = _page(name, version, ctx.find_root().command, {"ENVIRONMENT": variables, "FILES": files})
        click.echo("\n".join(page))

    return man


def _page(name: str, version: str, program: click.Command, lists: Mapping[str, Rows]) -> Iterator[str]:
    root, *commands = iter_commands(program, name)
    purpose, *rest = _paragraphs(program)
    yield f'.TH {name.upper()} 1 "" "{name} {version}" "User Commands"'
    yield from (".SH NAME", f"{name} \\- {_escaped(purpose.removesuffix('.'))}")
    yield from (".SH SYNOPSIS", _usage(*root), ".SH DESCRIPTION")
    yield from _text(rest)
    yield from _options(*root)
    yield ".SH COMMANDS"
    for command, ctx in commands:
        yield f'.SS "{_escaped(ctx.command_path)}"'
        yield from (_usage(command, ctx), ".PP")
        yield from _text(_paragraphs(command))
        yield from _options(command, ctx)
    for title, rows in lists.items():
        yield f".SH {title}"
        for row in rows:
            yield from _item(*row)


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
        if record is not None and record[1]:  # the usage has the others
            yield from _item(*record)


def _item(name: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_escaped(name)}\\fR", _escaped(text))


def _escaped(text: str) -> str:
    """Return a text as one line of roff: a backslash, a hyphen, and a dot or quote at the beginning have a meaning there.

    Characters outside ASCII become escapes, because not every roff reads UTF-8.
    """
    line = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    line = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in line)
    return f"\\&{line}" if line.startswith((".", "'")) else line
