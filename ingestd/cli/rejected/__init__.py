"""`ingestd rejected`: show, export, retry and drop rejections; one module for each verb."""

from __future__ import annotations

import click

from ingestd.cli.rejected.drop import drop
from ingestd.cli.rejected.export import export
from ingestd.cli.rejected.list_verb import list_
from ingestd.cli.rejected.retry import retry
from ingestd.cli.rejected.show import show

__all__ = ["rejected"]


@click.group()
def rejected() -> None:
    """Show, export, retry or drop rejected records, entries and files.

    Rejected is: a record that can't be mapped, an entry that the service refuses, a key that another pipeline writes, a file
    that can't be read. Each is stored with its reason until it is corrected at its source, retried, or dropped. `list`, `show`
    and `export` change nothing. `retry` and `drop` are done by the daemon if one runs.

    Example: ingestd rejected list --pipeline mass-budget
    """


for verb in (list_, show, export, retry, drop):
    rejected.add_command(verb)
