"""``workspaced files restore``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.failure import Failure
from workspaced.core.clock import now_ms
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.core.text import as_uuid
from workspaced.resources.cloud_storage import deleted_files
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction


@click.command()
@click.argument("file")
@address_option
def restore(file: str, address: Address) -> None:
    """Bring FILE, given by its id, back with all its versions, while it is deleted and not yet purged."""
    file_id = as_uuid(file)
    if file_id is None:
        raise Failure(f"'{file}' is no file's id: it must be a UUID.", 2)

    def work(tx: Transaction) -> None:
        try:
            deleted_files.restore(tx, file_id, now=now_ms())
        except (NotFoundProblem, ConflictProblem) as problem:
            raise Failure(f"{problem.detail} `workspaced files list --deleted` shows what can be.", 1) from problem

    in_transaction(address, work)
    click.echo(f"{file_id} is restored.")
