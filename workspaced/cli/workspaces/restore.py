"""``workspaced workspaces restore``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.failure import Failure
from workspaced.core.clock import now_ms
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.core.text import as_uuid
from workspaced.resources.workspaces import retention
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction


@click.command()
@click.argument("workspace")
@address_option
def restore(workspace: str, address: Address) -> None:
    """Bring WORKSPACE, given by its id, back with all that was in it, while it is deleted and not yet purged."""
    workspace_id = as_uuid(workspace)
    if workspace_id is None:
        raise Failure(f"'{workspace}' is no workspace's id: it must be a UUID.", 2)

    def work(tx: Transaction) -> None:
        try:
            retention.restore(tx, workspace_id, now=now_ms())
        except (NotFoundProblem, ConflictProblem) as problem:
            raise Failure(f"{problem.detail} `workspaced workspaces list --deleted` shows what can be.", 1) from problem

    in_transaction(address, work)
    click.echo(f"{workspace_id} is restored.")
