"""``workspaced files``: what only who runs the service may do with files."""

from __future__ import annotations

import click

from workspaced.cli.files.list import list_files
from workspaced.cli.files.restore import restore


@click.group()
def files() -> None:
    """Files: list, restore."""


for verb in (list_files, restore):
    files.add_command(verb)

__all__ = ["files"]
