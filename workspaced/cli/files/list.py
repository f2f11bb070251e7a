"""``workspaced files list``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.failure import Failure
from workspaced.core.text import as_uuid
from workspaced.core.timestamps import stamp
from workspaced.resources.cloud_storage.deleted_files import ListedFile, every_file
from workspaced.storage.address import Address


@click.command("list")
@click.option("--workspace", default="", help="Id of the one workspace to show; default: all.")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@address_option
def list_files(workspace: str, address: Address, *, deleted: bool) -> None:
    """Show every file: id, workspace, name, size in bytes, since when, state."""
    workspace_id = as_uuid(workspace) if workspace else ""
    if workspace_id is None:
        raise Failure(f"'{workspace}' is no workspace's id: it must be a UUID.", 2)
    known = in_transaction(address, lambda tx: every_file(tx, workspace_id=workspace_id))
    for file in known:
        if file.deleted_at is not None or not deleted:
            fields = (file.id, file.workspace_id, file.name, str(file.size), stamp(file.created_at), _state(file))
            click.echo("\t".join(fields))


def _state(file: ListedFile) -> str:
    if file.deleted_at is not None:
        return f"deleted {stamp(file.deleted_at)}"
    return "announced" if file.versions == 0 else "active"
