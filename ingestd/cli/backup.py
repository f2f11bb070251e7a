"""`ingestd backup`."""

from __future__ import annotations

from pathlib import Path

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.commands.state_backup import back_up
from ingestd.commands.status import refuse_on_standby
from ingestd.daemon.configuration import Configuration
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@with_configuration_without_secrets
def backup(configuration: Configuration, file: Path) -> None:
    """Copy the state file to the new FILE, while the daemon runs or not.

    The copy is one consistent state, and it is checked completely. It contains values of the sinks and rejected rows, but no
    secret of the configuration: protect it like the state file. 'ingestd restore FILE' restores it.

    Exit codes: 0 done, 74 FILE exists or can't be written, or the state file is damaged.

    Example: ingestd backup backups/ingestd.db
    """
    refuse_on_standby(configuration.settings.state)
    size = back_up(configuration, file)
    echo(f"{file} is a copy of {configuration.settings.state}, of {size} bytes.")
