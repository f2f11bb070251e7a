"""``workspaced backup``: copy all data into a new folder."""

from __future__ import annotations

from pathlib import Path

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import (
    blobs_option,
    data_option,
    database_option,
    selected_address,
    selected_blobs,
    with_failures,
)
from workspaced.storage.backup import back_up


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@data_option(required=True)
@database_option
@blobs_option
def backup(folder: Path, data: Path, database: str, blobs: str) -> None:
    """Copy all data into the new FOLDER, while the service runs or not.

    FOLDER then has the records of one point in time: workspaced.db, or for PostgreSQL workspaced.dump, written by pg_dump.
    FOLDER/blobs has the bytes of all files. Bytes in a bucket (--blobs) are not in the backup: `workspaced blobs copy` copies
    them to a folder. The backup contains secrets: protect it like the data folder. It does not contain
    WORKSPACED_ENCRYPTION_KEY, without which the secrets of webhooks can't be read.

    \b
    To restore the backup, stop the service. For SQLite, the backup is a data folder:
      cp -a FOLDER NEW_DATA
      workspaced serve --data NEW_DATA
    For PostgreSQL, restore the backup into a new, empty database:
      createdb workspaced_restored
      pg_restore --exit-on-error --no-owner --dbname workspaced_restored FOLDER/workspaced.dump
      mkdir NEW_DATA; cp -a FOLDER/blobs NEW_DATA/
      workspaced serve --data NEW_DATA --database postgresql://…/workspaced_restored
    """  # noqa: D301  the escape prevents click from rewrapping the lines
    address = selected_address(data, database)
    source = selected_blobs(data, blobs)
    count = with_failures(lambda: back_up(address, source if isinstance(source, Path) else None, folder))
    if isinstance(source, Path):
        bytes_ = f"{count} {'file' if count == 1 else 'files'} of bytes"
    else:
        bytes_ = f"no bytes: they stay in {source}, and `workspaced blobs copy` copies them"
    echo(f"{folder} has the records of {address} and {bytes_}.")
