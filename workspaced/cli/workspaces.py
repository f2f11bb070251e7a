"""``workspaced workspaces``: create, list and restore workspaces."""

from __future__ import annotations

import uuid

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, configured_limits, in_transaction, restored, uuid_of
from workspaced.cli.failure import Failure
from workspaced.cli.listing import Row, json_option, print_rows
from workspaced.core.bodies import read_body
from workspaced.core.clock import now_ms
from workspaced.core.problems import Invalid
from workspaced.core.text import normalised
from workspaced.core.timestamps import stamp
from workspaced.http.operations import Author
from workspaced.resources.workspaces import events, retention, store
from workspaced.resources.workspaces.retention import ListedWorkspace, every_workspace
from workspaced.resources.workspaces.rules import NewWorkspace
from workspaced.resources.workspaces.store import StoredWorkspace
from workspaced.security.audit_log import SYSTEM
from workspaced.security.permissions import Principal
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction

_SYSTEM = Principal(name=SYSTEM.principal, key_id="", everywhere=frozenset(), by_workspace={})
_COLUMNS = ("id", "label", "created", "deleted", "state")


@click.group()
def workspaces() -> None:
    """Workspaces: create, list, restore."""


@workspaces.command()
@click.argument("label")
@json_option
@address_option
def create(label: str, address: Address, *, as_json: bool) -> None:
    """Create a workspace with this LABEL, and print its id. Keys with a role in all workspaces may use it.

    The label must differ from the labels of all other workspaces: a pipeline that names a label of two workspaces is paused.
    """
    try:
        new, _ = read_body(NewWorkspace, {"label": label}, configured_limits())
    except Invalid as problem:
        raise Failure(f"The {problem.detail.removeprefix('/')}", 2) from problem

    def work(tx: Transaction) -> StoredWorkspace:
        same = [one.id for one in store.list_workspaces(tx) if normalised(one.label) == normalised(new.label)]
        if same:
            raise Failure(f"A workspace has the label '{new.label}' already: {', '.join(same)}.", 1)
        author = Author(principal=_SYSTEM, now=now_ms())
        created = store.create_workspace(tx, author, new, workspace_id=str(uuid.uuid4()), root_block=str(uuid.uuid4()))
        events.emit_created(tx, author, created)
        return created

    created = in_transaction(address, work, creates=True)
    print_rows(("id", "label"), [{"id": created.id, "label": created.label}], as_json=as_json)


@workspaces.command("list")
@click.option("--deleted", is_flag=True, help="Only workspaces that are deleted and not yet purged.")
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
    """Restore the deleted WORKSPACE, given by its id, with all its contents. A purged workspace can't be restored."""
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
