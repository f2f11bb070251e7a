"""`ingestd reload`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click

from ingestd.cli.options import utc_option, with_configuration_without_secrets
from ingestd.commands.control_client import call_daemon
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Reload, Reloaded
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.reporting import describe_retries
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo


@click.command()
@utc_option
@with_configuration_without_secrets
def reload(configuration: Configuration) -> None:
    """Make the running daemon read its configuration again and apply the changes.

    Only changed pipelines restart. Secrets are read again. Waiting deliveries, and sources that could not be read, are tried
    again at once, except sources that asked for a longer wait. The whole configuration is checked first; if it has a mistake,
    nothing changes. SIGHUP does the same.

    Exit codes: 0 done, 75 no daemon runs, 78 the configuration can't be used and nothing changes.

    Example: ingestd reload
    """
    try:
        response = asyncio.run(call_daemon(configuration.settings.state, Reload()))
    except NoDaemon:
        raise RequestRefused(
            f"No daemon runs with the state file {configuration.settings.state}. The next start reads the configuration. If a "
            "daemon runs with another state file, the setting 'state' was changed, and only a restart of the daemon can apply it."
        ) from None
    if not isinstance(response, Reloaded):
        raise TypeError(f"the response to a reload is {response!r}")
    for mistake in response.mistakes:
        echo(redact_text(mistake), err=True)
    if response.mistakes:
        echo("Nothing was changed. The daemon keeps the configuration in use.", err=True)
        sys.exit(ExitCode.CONFIGURATION)
    for line in _changes(response):
        echo(line)


def _changes(reloaded: Reloaded) -> Iterator[str]:
    """Yield a line for each kind of change."""
    renamed = tuple(f"{before} to {after}" for before, after in reloaded.renamed)
    named = {
        "Added": reloaded.added,
        "Removed": reloaded.removed,
        "Renamed": renamed,
        "Restarted": reloaded.restarted,
    }
    for kind, names in named.items():
        if names:
            yield f"{kind}: {', '.join(names)}"
    yield f"Unchanged: {counted(reloaded.unchanged, 'pipeline')}"
    if reloaded.api_key:
        yield "The new API key is in use."
    elif reloaded.service:
        yield "The new settings of the service are in use."
    if reloaded.rejected:
        yield "The new limits of rejections are in use."
    yield "Deliveries that wait are tried again now."
    yield from describe_retries(reloaded)
