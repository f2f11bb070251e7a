"""The options that select rejections, shared by all verbs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import click
import msgspec

from ingestd.cli.completion import FILE_OR_TABLE, PIPELINE
from ingestd.mirror.rejections import Selection

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="[NUMBER]..."),
    click.option("--pipeline", type=PIPELINE, default="", metavar="NAME", help="Only rejections of this pipeline."),
    click.option("--reason", default="", metavar="TEXT", help="The reason contains this text (ignoring case)."),
    click.option(
        "--file",
        type=FILE_OR_TABLE,
        default="",
        metavar="NAME",
        help="From this file or table: a name, or a pattern like '*.csv'.",
    ),
    click.option("--key", default="", metavar="KEY", help="Entries with this key: a key, or a pattern like '00417.*'."),
)


def with_selection(verb: Callable[Concatenate[Selection, P], R]) -> Callable[..., R]:
    """Add arguments and options that select rejections to a verb, and pass the `Selection` to this verb."""

    @functools.wraps(verb)
    def select(*args: P.args, **kwargs: P.kwargs) -> R:
        filters = {name: kwargs.pop(name) for name in ("pipeline", "reason", "file", "key")}
        selection = msgspec.convert({"ids": kwargs.pop("numbers"), **filters}, Selection)
        return verb(selection, *args, **kwargs)

    decorated: Callable[..., R] = select
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def require_explicit(selection: Selection, *, everything: bool) -> Selection:
    """Return the selection. An empty selection selects everything, and requires ``--all``.

    Raises:
        click.UsageError: the selection is empty without ``--all``, or not empty with ``--all``.
    """
    if selection == Selection() and not everything:
        raise click.UsageError("Select rejections: numbers, --pipeline, --reason, --file, --key, or --all.")
    if selection != Selection() and everything:
        raise click.UsageError("--all selects everything. Remove it, or the other selection.")
    return selection


all_option = click.option("--all", "everything", is_flag=True, help="All rejections.")
