"""``workspaced workspaces``: list and restore workspaces."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, in_transaction, restored, uuid_of
from workspaced.cli.listing import Row, json_option, print_rows
from workspaced.core.timestamps import stamp
from workspaced.resources.workspaces import retention
from workspaced.resources.workspaces.retention import ListedWorkspace, every_workspace
from workspaced.storage.address import Address

_COLUMNS = ("id", "label", "created", "deleted", "state")


@click.group()
def workspaces() -> None:
    """Workspaces: list, restore."""


@workspaces.command("list")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@json_option
@address_option
def list_workspaces(address: Address, *, deleted: bool, as_json: bool) -> None:
    """Print all workspaces with their labels, times and states."""
    found = in_transaction(address, every_workspace)
    rows = [_row(workspace) for workspace in found if workspace.deleted_at is not None or not deleted]
    print_rows(_COLUMNS, rows, as_json=as_json)


@workspaces.command()
@click.argument("workspace")
@address_option
def restore(workspace: str, address: Address) -> None:
    """Restore WORKSPACE, given by its id, with all its contents, while it is deleted and not yet purged."""
    workspace_id = uuid_of("workspace", workspace)
    restored(address, "workspaces", lambda tx, now: retention.restore(tx, workspace_id, now=now))
    echo(f"{workspace_id} is restored.")


def _row(workspace: ListedWorkspace) -> Row:
    state = "active" if workspace.deleted_at is None else "deleted"
    return {
        "id": workspace.id,
        "label": workspace.label,
        "created": stamp(workspace.created_at),
        "deleted": stamp(workspace.deleted_at) if workspace.deleted_at is not None else None,
        "state": "being purged" if workspace.purging else state,
    }
