"""`ingestd why`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from ingestd.cli.options import observing
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.why import readable
from ingestd.daemon.why import why as ask_why


@click.command()
@click.argument("path")
@observing
def why(configuration: Configuration, path: str) -> None:
    """Say why a file waits, or what became of it.

    PATH is a file, there or gone, in a folder or in its archive; or what a pipeline calls it, such as 'sub/run.csv' or a
    table's name. One line for each pipeline that knows it.

    Exit codes: 0 there is something to say, 1 no pipeline knows it.
    """
    sentences = asyncio.run(ask_why(configuration, path, cwd=Path.cwd()))
    for sentence in sentences:
        click.echo(sentence)
    if not sentences:
        click.echo(
            f"No pipeline of {configuration.path} knows '{readable(path)}': it is in none of their folders, or was never there.",
            err=True,
        )
    sys.exit(0 if sentences else 1)
