"""``workspaced workspaces``: what only who runs the service may do."""

from __future__ import annotations

import click

from workspaced.cli.workspaces.list import list_workspaces
from workspaced.cli.workspaces.restore import restore


@click.group()
def workspaces() -> None:
    """Workspaces: list, restore."""


for verb in (list_workspaces, restore):
    workspaces.add_command(verb)

__all__ = ["workspaces"]
