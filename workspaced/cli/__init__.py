"""The command line: a module for each verb."""

from __future__ import annotations

from typing import ClassVar

import click

from ingestd.process.verbs import Verbs
from workspaced import __version__


class ServiceVerbs(Verbs):
    """The verbs of `workspaced`."""

    verbs: ClassVar[tuple[str, ...]] = ("serve", "keys", "workspaces", "files", "migrate", "backup", "openapi")
    package: ClassVar[str] = __name__


@click.group(
    cls=ServiceVerbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "WORKSPACED"}
)
@click.version_option(__version__, prog_name="workspaced")
def main() -> None:
    """The workspace service: workspaces, data sinks, and the keys to them."""


__all__ = ["main"]
