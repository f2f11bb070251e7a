"""The options by which rejections are chosen, shared by all verbs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import click
import msgspec

from ingestd.mirror.rejections import Selection

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="[NUMBER]..."),
    click.option("--pipeline", default="", metavar="NAME", help="Of this pipeline."),
    click.option("--reason", default="", metavar="TEXT", help="Whose reason has this text in it, in any letters."),
    click.option(
        "--file", default="", metavar="NAME", help="From this file or table; a name, or a pattern like '*.csv'."
    ),
    click.option("--key", default="", metavar="KEY", help="Entries of this key; a key, or a pattern like '00417.*'."),
)


def chosen(verb: Callable[Concatenate[Selection, P], R]) -> Callable[..., R]:
    """Give a verb numbers and filters, and hand it what they choose."""

    @functools.wraps(verb)
    def choose(*args: P.args, **kwargs: P.kwargs) -> R:
        said = {name: kwargs.pop(name) for name in ("pipeline", "reason", "file", "key")}
        selection = msgspec.convert({"ids": kwargs.pop("numbers"), **said}, Selection)
        return verb(selection, *args, **kwargs)

    decorated: Callable[..., R] = choose
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def meant(selection: Selection, *, everything: bool) -> Selection:
    """A selection that changes something: one that says nothing must be confirmed by ``--all``."""
    if selection == Selection() and not everything:
        raise click.UsageError("Say which: numbers, --pipeline, --reason, --file, --key, or --all.")
    if selection != Selection() and everything:
        raise click.UsageError("--all is everything; leave it out, or the filters.")
    return selection


everything = click.option("--all", "everything", is_flag=True, help="All that is rejected.")
