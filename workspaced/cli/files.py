"""``workspaced files``: list and restore files."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, in_transaction, restored, uuid_of
from workspaced.cli.listing import Row, json_option, print_rows
from workspaced.core.timestamps import stamp
from workspaced.resources.cloud_storage import retention
from workspaced.resources.cloud_storage.retention import ListedFile, every_file
from workspaced.storage.address import Address

_COLUMNS = ("id", "workspace", "name", "bytes", "created", "deleted", "state")


@click.group()
def files() -> None:
    """Files: list, restore."""


@files.command("list")
@click.option("--workspace", default="", help="Id of the one workspace to show; default: all.")
@click.option("--deleted", is_flag=True, help="Only files that are deleted and not yet purged.")
@json_option
@address_option
def list_files(workspace: str, address: Address, *, deleted: bool, as_json: bool) -> None:
    """Print all files with their workspaces, sizes in bytes, times and states."""
    workspace_id = uuid_of("workspace", workspace) if workspace else ""
    found = in_transaction(address, lambda tx: every_file(tx, workspace_id=workspace_id))
    rows = [_row(file) for file in found if file.deleted_at is not None or not deleted]
    print_rows(_COLUMNS, rows, as_json=as_json)


@files.command()
@click.argument("file")
@address_option
def restore(file: str, address: Address) -> None:
    """Restore the deleted FILE, given by its id, with all its versions. A purged file can't be restored."""
    file_id = uuid_of("file", file)
    restored(address, "files", lambda tx, now: retention.restore(tx, file_id, now=now))
    echo(f"{file_id} is restored.")


def _row(file: ListedFile) -> Row:
    state = "announced" if file.versions == 0 else "active"
    return {
        "id": file.id,
        "workspace": file.workspace_id,
        "name": file.name,
        "bytes": file.size,
        "created": stamp(file.created_at),
        "deleted": stamp(file.deleted_at) if file.deleted_at is not None else None,
        "state": "deleted" if file.deleted_at is not None else state,
    }
