"""The options that verbs share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

import click

from ingestd.daemon.configuration import Configuration, read_configuration

P = ParamSpec("P")
R = TypeVar("R")


Verb: TypeAlias = Callable[Concatenate[Configuration, P], R]


def configured(verb: Verb[P, R]) -> Callable[..., R]:
    """Give a verb the option ``-c``, which may as well come before it, and hand it the configuration that was read."""
    return _configured(verb, secrets=True)


def observing(verb: Verb[P, R]) -> Callable[..., R]:
    """As `configured`, for a verb that reads the state file or asks the daemon: it needs none of the secrets."""
    return _configured(verb, secrets=False)


def _configured(verb: Verb[P, R], *, secrets: bool) -> Callable[..., R]:
    @click.option("-c", "--config", type=click.Path(path_type=Path, dir_okay=False), help="The configuration file.")
    @click.pass_context
    @functools.wraps(verb)
    def read_first(ctx: click.Context, /, config: Path | None, *args: P.args, **kwargs: P.kwargs) -> R:
        explicit = config if config is not None else ctx.obj
        configuration = read_configuration(explicit, environment=os.environ, cwd=Path.cwd(), secrets=secrets)
        return verb(configuration, *args, **kwargs)

    return read_first
