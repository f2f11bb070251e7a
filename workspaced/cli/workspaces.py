"""``workspaced workspaces``: list and restore workspaces."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, in_transaction, restored, uuid_of
from workspaced.core.timestamps import stamp
from workspaced.resources.workspaces import retention
from workspaced.resources.workspaces.retention import ListedWorkspace, every_workspace
from workspaced.storage.address import Address


@click.group()
def workspaces() -> None:
    """Workspaces: list, restore."""


@workspaces.command("list")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@address_option
def list_workspaces(address: Address, *, deleted: bool) -> None:
    """Print all workspaces: id, label, created, state."""
    for workspace in in_transaction(address, every_workspace):
        if workspace.deleted_at is not None or not deleted:
            fields = (workspace.id, workspace.label, stamp(workspace.created_at), _state(workspace))
            echo("\t".join(fields))


@workspaces.command()
@click.argument("workspace")
@address_option
def restore(workspace: str, address: Address) -> None:
    """Restore WORKSPACE, given by its id, with all its contents, while it is deleted and not yet purged."""
    workspace_id = uuid_of("workspace", workspace)
    restored(address, "workspaces", lambda tx, now: retention.restore(tx, workspace_id, now=now))
    echo(f"{workspace_id} is restored.")


def _state(workspace: ListedWorkspace) -> str:
    if workspace.purging:
        return "being purged"
    return "active" if workspace.deleted_at is None else f"deleted {stamp(workspace.deleted_at)}"
