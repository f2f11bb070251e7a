"""The option ``-c`` that verbs share."""

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


def with_configuration(verb: Verb[P, R]) -> Callable[..., R]:
    """Add the option ``-c`` to a verb and pass it the configuration. ``-c`` may also precede the verb."""
    return _with_configuration(verb, secrets=True)


def with_configuration_without_secrets(verb: Verb[P, R]) -> Callable[..., R]:
    """Do the same as `with_configuration`, for a verb that needs no secrets: it uses the state file or the daemon."""
    return _with_configuration(verb, secrets=False)


def _with_configuration(verb: Verb[P, R], *, secrets: bool) -> Callable[..., R]:
    @click.option("-c", "--config", type=click.Path(path_type=Path, dir_okay=False), help="The configuration file.")
    @click.pass_context
    @functools.wraps(verb)
    def read_first(ctx: click.Context, /, config: Path | None, *args: P.args, **kwargs: P.kwargs) -> R:
        explicit = config if config is not None else ctx.obj
        configuration = read_configuration(explicit, environment=os.environ, cwd=Path.cwd(), secrets=secrets)
        return verb(configuration, *args, **kwargs)

    return read_first
