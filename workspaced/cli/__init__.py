"""The command line: one verb a file, no logic."""

from __future__ import annotations

import importlib

import click

from workspaced import __version__

VERBS = ("serve", "keys", "workspaces", "files", "migrate", "backup", "openapi")


class Verbs(click.Group):
    """Finds each verb in the module of its name, when it is needed: making a key need not load the whole service."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs, in the order in which a newcomer meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The verb, or None, for which click has a sentence."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(f"workspaced.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "WORKSPACED"})
@click.version_option(__version__, prog_name="workspaced")
def main() -> None:
    """The workspace service: workspaces, data sinks, and the keys to them."""


__all__ = ["main"]
