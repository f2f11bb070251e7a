"""``workspaced keys``: who may use the service."""

from __future__ import annotations

import click

from workspaced.cli.keys.create import create
from workspaced.cli.keys.list import list_keys
from workspaced.cli.keys.revoke import revoke
from workspaced.cli.keys.rotate import rotate


@click.group()
def keys() -> None:
    """API keys: create, list, rotate, revoke."""


for verb in (create, list_keys, revoke, rotate):
    keys.add_command(verb)

__all__ = ["keys"]
