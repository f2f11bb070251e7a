"""`ingestd reload`."""

from __future__ import annotations

import asyncio
import sys

import click

from ingestd.cli.options import observing
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NobodyListens, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Reload, Reloaded
from ingestd.daemon.exit_codes import ExitCode


@click.command()
@observing
def reload(configuration: Configuration) -> None:
    """Make the running daemon read its secrets again and deliver at once.

    For a key that was changed where it is kept, and after something that was in the way has been put right. The configuration
    file is checked as a whole; if it has a mistake, nothing changes. SIGHUP does the same.

    Exit codes: 0 done, 75 no daemon runs, 78 the configuration has mistakes and the daemon runs on as before.
    """
    try:
        answer = asyncio.run(call(configuration.settings.state, Reload()))
    except NobodyListens:
        raise RequestRefused(
            f"No daemon runs with the state file {configuration.settings.state}. The next start reads the configuration."
        ) from None
    if not isinstance(answer, Reloaded):
        raise TypeError(f"the daemon answered a reload with {answer!r}")
    for mistake in answer.mistakes:
        click.echo(mistake, err=True)
    if answer.mistakes:
        click.echo("Nothing was changed; the daemon runs on with the configuration that it was started with.", err=True)
        sys.exit(ExitCode.CONFIGURATION)
    key = "The API key has changed and is used from now on." if answer.key_changed else "The API key is the same."
    click.echo(f"{key} What waited for the service is tried again now.")
    if answer.restart_for:
        click.echo(f"Changed, and used after a restart of the daemon only: {', '.join(answer.restart_for)}.")
