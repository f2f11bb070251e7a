"""`ingestd reload`."""

from __future__ import annotations

import asyncio
import sys

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Reload, Reloaded
from ingestd.daemon.exit_codes import ExitCode


@click.command()
@with_configuration_without_secrets
def reload(configuration: Configuration) -> None:
    """Make the running daemon read its secrets again and retry at once.

    Use it after a change of the API key, and after the cause of an error is removed. The whole configuration file is checked;
    if it has a mistake, nothing changes. SIGHUP does the same.

    Exit codes: 0 done, 75 no daemon runs, 78 the configuration has mistakes and the daemon keeps the old one.

    Example: ingestd reload
    """
    try:
        response = asyncio.run(call(configuration.settings.state, Reload()))
    except NoDaemon:
        raise RequestRefused(
            f"No daemon runs with the state file {configuration.settings.state}. The next start reads the configuration."
        ) from None
    if not isinstance(response, Reloaded):
        raise TypeError(f"the response to a reload is {response!r}")
    for mistake in response.mistakes:
        click.echo(mistake, err=True)
    if response.mistakes:
        click.echo("Nothing was changed. The daemon keeps the configuration that it was started with.", err=True)
        sys.exit(ExitCode.CONFIGURATION)
    key = "The new API key is in use." if response.key_changed else "The API key is unchanged."
    click.echo(f"{key} Waiting deliveries are retried now.")
    if response.restart_for:
        click.echo(f"These changes need a restart of the daemon: {', '.join(response.restart_for)}.")
