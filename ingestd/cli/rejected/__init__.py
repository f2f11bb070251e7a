"""`ingestd rejected`: show, export, retry and drop rejections."""

from __future__ import annotations

import click

from ingestd.cli.rejected.decisions import drop, retry
from ingestd.cli.rejected.views import export, list_, show

__all__ = ["rejected"]


@click.group()
def rejected() -> None:
    """Show, export, retry or drop rejected records, entries and files.

    These are rejected: a record that can't be mapped, an entry that the service refuses, a key that another pipeline writes,
    and a file that can't be read. Each is stored with its reason until it is corrected at its source, retried, or dropped.
    `list`, `show` and `export` change nothing. If a daemon runs, it performs `retry` and `drop`.

    Example: ingestd rejected list --pipeline mass-budget
    """


for verb in (list_, show, export, retry, drop):
    rejected.add_command(verb)
