"""`ingestd restore`."""

from __future__ import annotations

from pathlib import Path

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.commands.state_backup import restore as restore_backup
from ingestd.daemon.configuration import Configuration
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@with_configuration_without_secrets
def restore(configuration: Configuration, file: Path) -> None:
    """Replace the state file by the backup FILE.

    Stop the daemon first. The backup is checked completely. The former state file is kept in the same folder: delete it when
    you no longer need it. The next start compares every sink with its sources, because the service may have newer values than
    the backup. Values of files that were archived after the backup are not sent again: 'ingestd drift' lists them.

    Exit codes: 0 done, 74 FILE is no backup or is damaged, 75 the daemon runs.

    Example: ingestd restore backups/ingestd.db
    """
    replaced = restore_backup(configuration, file)
    kept = f" The former state file is {replaced}." if replaced is not None else ""
    echo(
        f"{configuration.settings.state} now has the content of the backup {file}.{kept} Start ingestd: it compares the sinks."
    )
