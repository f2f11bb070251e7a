"""`ingestd discard`."""

from __future__ import annotations

import click

from ingestd.cli.approve import decided
from ingestd.cli.options import with_configuration_without_secrets
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import DecideRun
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("run", type=click.IntRange(min=1))
@with_configuration_without_secrets
def discard(configuration: Configuration, run: int) -> None:
    """Delete a run that the guard or the contract holds, and keep what is delivered.

    'ingestd status' lists the held runs. The same content is not held again: the file or table is ignored until it changes. A
    file stays in its folder. If a daemon runs, it discards the run.

    Exit codes: 0 discarded, 1 the run is not held.

    Example: ingestd discard 12
    """
    response, _ = decided(configuration, DecideRun(run=run, decision="discarded"))
    echo(
        f"Run {run} of {response.partition} (pipeline {response.pipeline}) is discarded. Nothing of the run is delivered; its "
        "source is read again when it changes."
    )
