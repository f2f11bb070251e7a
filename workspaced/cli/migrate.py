"""``workspaced migrate``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, done
from workspaced.storage import factory
from workspaced.storage.address import Address


@click.command()
@address_option
def migrate(address: Address) -> None:
    """Bring the database to the schema of this program.

    A SQLite file is brought there by every start of the service, too. PostgreSQL is not, since several processes use it:
    run this once after an upgrade. Each step is done whole or not at all; of several that are started only one works.
    """
    before, after = done(lambda: factory.migrate(address))
    if before == after:
        click.echo(f"{address} has schema {after}: nothing to do.")
    else:
        click.echo(f"{address} went from schema {before} to {after}.")
