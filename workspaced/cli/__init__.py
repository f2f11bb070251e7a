"""The command line: one verb a file, no logic."""

from __future__ import annotations

import click

from workspaced import __version__
from workspaced.cli.backup import backup
from workspaced.cli.files import files
from workspaced.cli.keys import keys
from workspaced.cli.migrate import migrate
from workspaced.cli.openapi import openapi
from workspaced.cli.serve import serve
from workspaced.cli.workspaces import workspaces


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "WORKSPACED"})
@click.version_option(__version__, prog_name="workspaced")
def main() -> None:
    """The workspace service: workspaces, data sinks, and the keys to them."""


main.add_command(serve)
main.add_command(keys)
main.add_command(workspaces)
main.add_command(files)
main.add_command(migrate)
main.add_command(backup)
main.add_command(openapi)

__all__ = ["main"]
