"""A command line whose verbs are modules, each loaded when it is needed: `--version` need not load what `run` does."""

from __future__ import annotations

import importlib
from typing import ClassVar

import click


class Verbs(click.Group):
    """Finds each verb in the module of its name, under the same name. A subclass says which there are, and where."""

    verbs: ClassVar[tuple[str, ...]]
    """In the order in which a newcomer meets them."""
    package: ClassVar[str]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The verb, or None, for which click has a sentence."""
        if cmd_name not in self.verbs:
            return None
        command: click.Command = getattr(importlib.import_module(f"{self.package}.{cmd_name}"), cmd_name)
        return command
