"""The lists that commands print: a table with a header, or lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import click

from ingestd.process.terminal_text import aligned, echo, echo_lines, terminal_line

Row: TypeAlias = Mapping[str, str | int | Sequence[str] | None]
"""A row of a list, by the names of the columns. None is printed as "never"."""

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """Add the flag ``--json`` to a command that prints a list. The command gets the flag as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each line.")(command)


def print_rows(columns: Sequence[str], rows: Sequence[Row], *, as_json: bool) -> None:
    """Print the ``columns`` of the rows: as a table with a header, or as lines of JSON."""
    if as_json:
        for row in rows:
            echo(json.dumps({name: row[name] for name in columns}, ensure_ascii=False))
        return
    table = [[name.upper() for name in columns], *([_cell(row[name]) for name in columns] for row in rows)]
    echo_lines(aligned(table))


def _cell(value: str | int | Sequence[str] | None) -> str:
    if value is None:
        return "never"
    if isinstance(value, str | int):
        return terminal_line(str(value))
    return ", ".join(map(terminal_line, value)) or "none"
