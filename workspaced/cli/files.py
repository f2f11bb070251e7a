"""``workspaced files``: list and restore files."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, in_transaction, restored, uuid_of
from workspaced.core.timestamps import stamp
from workspaced.resources.cloud_storage import retention
from workspaced.resources.cloud_storage.retention import ListedFile, every_file
from workspaced.storage.address import Address


@click.group()
def files() -> None:
    """Files: list, restore."""


@files.command("list")
@click.option("--workspace", default="", help="Id of the one workspace to show; default: all.")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@address_option
def list_files(workspace: str, address: Address, *, deleted: bool) -> None:
    """Print all files: id, workspace, name, size in bytes, created, state."""
    workspace_id = uuid_of("workspace", workspace) if workspace else ""
    for file in in_transaction(address, lambda tx: every_file(tx, workspace_id=workspace_id)):
        if file.deleted_at is not None or not deleted:
            fields = (file.id, file.workspace_id, file.name, str(file.size), stamp(file.created_at), _state(file))
            echo("\t".join(fields))


@files.command()
@click.argument("file")
@address_option
def restore(file: str, address: Address) -> None:
    """Restore FILE, given by its id, with all its versions, while it is deleted and not yet purged."""
    file_id = uuid_of("file", file)
    restored(address, "files", lambda tx, now: retention.restore(tx, file_id, now=now))
    echo(f"{file_id} is restored.")


def _state(file: ListedFile) -> str:
    if file.deleted_at is not None:
        return f"deleted {stamp(file.deleted_at)}"
    return "announced" if file.versions == 0 else "active"
