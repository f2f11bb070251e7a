"""``workspaced migrate``: migrate the database to the schema of this program."""

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

    A SQLite file is also migrated at each start of the service. PostgreSQL is migrated only by this command, because several
    processes use the database: run it once, before you upgrade the hosts. Each step is one transaction. If several migrations
    are started, only one works at a time. A step waits for sessions that use its tables, and for programs that can't use the
    new schema. After 30 seconds, the command names them and ends with an error.
    """
    before, after = with_failures(lambda: factory.migrate(address, on_wait=_report))
    if before == after:
        echo(f"{address} has schema {after}: nothing to do. {known()}")
    else:
        echo(f"{address} went from schema {before} to {after}. {known()}")


def _report(sentence: str) -> None:
    echo(sentence, err=True)
