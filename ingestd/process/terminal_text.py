"""Text for a terminal, without the secrets and control characters that file names and values of records may contain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click

from ingestd.process.redaction import redact_text


def terminal_line(text: str) -> str:
    """Return ``text`` as one line with escaped control characters, because a terminal would execute them."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def safe_line(text: str) -> str:
    """Return ``text`` as `terminal_line` does, without secrets.

    Secrets are masked before characters are escaped, because an escape inside a secret would hide it from the search.
    """
    return terminal_line(redact_text(text))


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row of a table, with aligned columns. All rows must have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text, lines or JSON. Control characters are escaped as in JSON, so that JSON stays valid.

    Every command prints by this function.
    """
    click.echo(
        "".join(one if one.isprintable() or one in "\n\t" else json.dumps(one)[1:-1] for one in text), err=err, nl=nl
    )


_LINES = 1_000


def echo_lines(lines: Iterable[str]) -> int:
    """Print lines and return their number. A thousand lines are printed at once, because `echo` flushes each time."""
    count = 0
    remaining = iter(lines)
    while found := list(islice(remaining, _LINES)):
        echo("\n".join(found))
        count += len(found)
    return count
