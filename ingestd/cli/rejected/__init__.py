"""`ingestd rejected`: what is parked, and what can be done about it; one verb a module."""

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
    """Work with what could not be used or was refused.

    A record that can't be mapped, an entry that the service refuses, a key that another pipeline writes, a file that can't be
    read: each is parked with its reason until it is mended at its source, put back, or dropped. `list`, `show` and `export`
    look only; `retry` and `drop` change something, and ask the daemon for it where one runs.
    """


for verb in (list_, show, export, retry, drop):
    rejected.add_command(verb)
