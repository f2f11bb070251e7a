"""``workspaced workspaces list``."""

from __future__ import annotations

from pathlib import Path

import click

from workspaced.cli.keys.database import data_option, in_transaction
from workspaced.timestamps import stamp
from workspaced.workspaces.retention import Known, every_workspace


@click.command("list")
@click.option("--deleted", is_flag=True, help="Only those that are deleted and not yet purged.")
@data_option
def list_workspaces(data: Path, *, deleted: bool) -> None:
    """Show every workspace: id, label, since when, state."""
    for workspace in in_transaction(data, every_workspace):
        if workspace.deleted_at is not None or not deleted:
            fields = (workspace.id, workspace.label, stamp(workspace.created_at), _state(workspace))
            click.echo("\t".join(fields))


def _state(workspace: Known) -> str:
    if workspace.purging:
        return "being purged"
    return "active" if workspace.deleted_at is None else f"deleted {stamp(workspace.deleted_at)}"
