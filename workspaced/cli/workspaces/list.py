"""``workspaced workspaces list``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.core.timestamps import stamp
from workspaced.resources.workspaces.retention import ListedWorkspace, every_workspace
from workspaced.storage.address import Address


@click.command("list")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@address_option
def list_workspaces(address: Address, *, deleted: bool) -> None:
    """Show every workspace: id, label, since when, state."""
    for workspace in in_transaction(address, every_workspace):
        if workspace.deleted_at is not None or not deleted:
            fields = (workspace.id, workspace.label, stamp(workspace.created_at), _state(workspace))
            click.echo("\t".join(fields))


def _state(workspace: ListedWorkspace) -> str:
    if workspace.purging:
        return "being purged"
    return "active" if workspace.deleted_at is None else f"deleted {stamp(workspace.deleted_at)}"
