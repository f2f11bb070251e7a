"""The options that verbs share: ``-c``, ``--json`` and ``--utc``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

import click

from ingestd.daemon.control.time_zone import UTC_NAME, local_zone, use_zone
from ingestd.process.cycle_collection import paused

if TYPE_CHECKING:
    from ingestd.daemon.configuration import Configuration

P = ParamSpec("P")
R = TypeVar("R")


def json_option(description: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that adds ``--json`` (as ``as_json``) and ``--utc`` to a verb. Times in JSON sentences are in UTC."""

    def add(verb: Callable[..., R]) -> Callable[..., R]:
        json = click.option("--json", "as_json", is_flag=True, help=description, callback=_choose_zone)
        return json(utc_option(verb))

    return add


def utc_option(verb: Callable[..., R]) -> Callable[..., R]:
    """Add ``--utc`` to a verb that prints times. Without ``--utc``, times are in the zone of the account or the machine."""
    about = "Print times in UTC, not in the local zone."
    return click.option("--utc", is_flag=True, expose_value=False, callback=_choose_zone, help=about)(verb)


def _choose_zone(ctx: click.Context, _parameter: click.Parameter, is_set: bool) -> bool:
    """Print times in UTC if ``--json`` or ``--utc`` is set, in any order of the options."""
    if is_set:
        ctx.meta["ingestd.utc"] = True
    use_zone(UTC_NAME if "ingestd.utc" in ctx.meta else local_zone(os.environ))
    ctx.call_on_close(lambda: use_zone(UTC_NAME))
    return is_set


Verb: TypeAlias = "Callable[Concatenate[Configuration, P], R]"


def with_configuration_path(verb: Callable[Concatenate[Path | None, P], R]) -> Callable[..., R]:
    """Add the option ``-c`` to a verb and pass it the path, or None. ``-c`` may also precede the verb."""

    @click.option("-c", "--config", type=click.Path(path_type=Path, dir_okay=False), help="The configuration file.")
    @click.pass_context
    @functools.wraps(verb)
    def pass_path(ctx: click.Context, /, config: Path | None, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(config if config is not None else ctx.obj, *args, **kwargs)

    return pass_path


def with_configuration(verb: Verb[P, R]) -> Callable[..., R]:
    """Add the option ``-c`` to a verb and pass it the configuration. ``-c`` may also precede the verb."""
    return _with_configuration(verb, secrets=True)


def with_configuration_without_secrets(verb: Verb[P, R]) -> Callable[..., R]:
    """Do the same as `with_configuration`, for a verb that needs no secrets because it uses the state file or the daemon."""
    return _with_configuration(verb, secrets=False)


def _with_configuration(verb: Verb[P, R], *, secrets: bool) -> Callable[..., R]:
    @functools.wraps(verb)
    def read_first(path: Path | None, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(configuration_at(path, secrets=secrets), *args, **kwargs)

    return with_configuration_path(read_first)


def configuration_at(path: Path | None, *, secrets: bool) -> Configuration:
    """Return the configuration of ``-c``, or of a default path; see `read_configuration`."""
    with paused():  # the connectors are imported
        from ingestd.daemon.configuration import read_configuration  # noqa: PLC0415 - most verbs' help needs none of it

        return read_configuration(path, environment=os.environ, cwd=Path.cwd(), secrets=secrets)


def chosen_names(configuration: Configuration, names: Sequence[str]) -> list[str]:
    """Return ``names`` without repetitions, or the names of all pipelines if ``names`` is empty.

    Raises:
        click.UsageError: there is no such pipeline.
    """
    from ingestd.daemon.configuration import PipelineUnknown, chosen_pipelines  # noqa: PLC0415 - as above

    try:
        return chosen_pipelines(configuration, names)
    except PipelineUnknown as error:
        raise click.UsageError(str(error)) from error
