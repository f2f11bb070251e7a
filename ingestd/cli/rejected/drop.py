"""`ingestd rejected drop`."""

from __future__ import annotations

import asyncio

import click

from ingestd.cli.options import observing
from ingestd.cli.rejected.selection import chosen, everything, meant
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import DropRejected
from ingestd.daemon.control_client import ask
from ingestd.mirror.rejections import Selection
from ingestd.process.logs import configure_logs
from ingestd.telemetry import log_event


@click.command()
@everything
@observing
@chosen
def drop(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Forget rejections; the log keeps who did it and what was chosen.

    What a dropped record or entry would have said is not said: the service keeps what it has. It comes back when the record
    changes at its source, and, where a file is read whole again (it is dropped once more, the mapping changes), is judged anew.
    `export` first keeps a copy.
    """
    request = DropRejected(selection=meant(selection, everything=everything))
    configure_logs()
    answer, _ = asyncio.run(ask(configuration, request, emit=log_event))
    if not answer:
        click.echo("Nothing that is rejected fits that.")
    else:
        click.echo(
            f"{answer} rejection{'' if answer == 1 else 's'} forgotten. The service keeps what it has until the source says "
            "something else."
        )
