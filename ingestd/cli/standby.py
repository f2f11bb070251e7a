"""`ingestd standby`: show and change which daemon is active."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

import click

from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import ControlStandby, StandbyControlled
from ingestd.process.terminal_text import echo


@click.group()
def standby() -> None:
    """Show or change which of the daemons with `ingestd run --standby` is active.

    The commands ask the daemon of this host.

    Example: ingestd standby status
    """


@standby.command()
@json_option("Print one JSON object.")
@with_configuration_without_secrets
def status(configuration: Configuration, as_json: bool) -> None:
    """Show which host holds the lease, its epoch, and the age of the last shipment.

    Exit codes: 0 done, 75 no daemon with --standby runs here.

    Example: ingestd standby status --json
    """
    _control(configuration, "status", as_json=as_json)


@standby.command()
@with_configuration_without_secrets
def promote(configuration: Configuration) -> None:
    """Make the daemon of this host, a standby, take over from the active daemon.

    The active daemon ships its state and releases the lease within a few seconds. If the active daemon does not run, this
    daemon takes over when the lease ends, even without this command.

    Exit codes: 0 the active daemon was asked, 1 this daemon is active already, 75 no daemon with --standby runs here.

    Example: ingestd standby promote
    """
    _control(configuration, "promote")


@standby.command("step-down")
@with_configuration_without_secrets
def step_down(configuration: Configuration) -> None:
    """Make the active daemon, on this host, release the lease to a standby.

    The daemon ships its state first, and ends with exit code 75. systemd starts it again as a standby.

    Exit codes: 0 the daemon releases the lease, 1 the daemon is a standby, 75 no daemon with --standby runs here.

    Example: ingestd standby step-down
    """
    _control(configuration, "step_down")


def _control(
    configuration: Configuration, action: Literal["status", "promote", "step_down"], *, as_json: bool = False
) -> None:
    state = configuration.settings.state
    try:
        response = asyncio.run(call(state, ControlStandby(action=action, as_json=as_json)))
    except NoDaemon:
        raise RequestRefused(
            f"No daemon runs with the state file {state}. Start it with 'ingestd run --standby'."
        ) from None
    if not isinstance(response, StandbyControlled):
        raise TypeError(f"the response is {response!r}")
    echo(response.text, err=not response.is_done)
    if not response.is_done:
        sys.exit(1)
