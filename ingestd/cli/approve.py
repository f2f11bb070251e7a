"""`ingestd approve`."""

from __future__ import annotations

import sys

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import DecideRun, RunDecided
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("run", type=click.IntRange(min=1))
@with_configuration_without_secrets
def approve(configuration: Configuration, run: int) -> None:
    """Deliver a run that the guard or the contract holds.

    'ingestd status' lists the held runs with their numbers and reasons. Exactly the entries of that run are delivered, even if
    its file is gone. If a later reading of the source had another result, a later run has replaced the held run, and the
    command names the later run. If a daemon is running, it performs the approval and sends the entries at once.

    Exit codes: 0 approved, 1 the run is not held.

    Example: ingestd approve 12
    """
    response, by_daemon = decided(configuration, DecideRun(run=run, decision="approved"))
    changes = f"{response.created} created, {response.updated} updated, {response.removed} removed"
    when = "The daemon sends them now." if by_daemon else "The next run or sync sends them."
    if response.paused:
        when = f"The pipeline is paused: they are sent after 'ingestd resume {response.pipeline}'."
    again = " The source is read once more: two of its records produce the same key." if response.read_again else ""
    echo(
        f"Run {run} of {response.partition} (pipeline {response.pipeline}) is approved; entries: {changes}. {when}{again}"
    )


def decided(configuration: Configuration, request: DecideRun) -> tuple[RunDecided, bool]:
    """Approve or discard a held run. Return the response, and whether a daemon did so. Exit with 1 if the run is not held."""
    configure_logs(level="error")
    response, by_daemon = execute(configuration, request, RunDecided)
    if response.refusal:
        echo(response.refusal, err=True)
        sys.exit(1)
    return response, by_daemon
