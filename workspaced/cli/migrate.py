"""``workspaced migrate``."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, with_failures
from workspaced.storage import factory
from workspaced.storage.address import Address
from workspaced.storage.schema import known


@click.command()
@address_option
def migrate(address: Address) -> None:
    """Migrate the database to the schema of this program.

    Each start of the service also migrates a SQLite file. It does not migrate PostgreSQL, which several processes use: run this
    once before the hosts are upgraded. Each step is one transaction. If several migrations are started, only one works at a
    time. If other sessions use the tables of a step for 30 seconds, or programs that it excludes use the database, the command
    ends and names them.
    """
    before, after = with_failures(lambda: factory.migrate(address, on_wait=_report))
    if before == after:
        echo(f"{address} has schema {after}: nothing to do. {known()}")
    else:
        echo(f"{address} went from schema {before} to {after}. {known()}")


def _report(sentence: str) -> None:
    echo(sentence, err=True)
