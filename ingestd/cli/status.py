"""`ingestd status`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ingestd.cli.options import json_option, with_configuration_path
from ingestd.daemon.control.status_caller import call_for_status
from ingestd.process.terminal_text import echo
from ingestd.settings.configuration_file import find_configuration, read_state_path


@click.command()
@json_option("Print one JSON object.")
@with_configuration_path
def status(path: Path | None, as_json: bool) -> None:
    """Show delivered, pending and rejected entries.

    Asks the running daemon, or reads the state file if no daemon runs. The first line says which.

    Example: ingestd status --json
    """
    echo(status_text(path, as_json=as_json))


def status_text(path: Path | None, *, as_json: bool) -> str:
    """Return the status of the running daemon, or the status in the state file if no daemon runs."""
    state = read_state_path(find_configuration(path, os.environ, Path.cwd()), os.environ)
    text = call_for_status(state, as_json=as_json) if state is not None else None
    return text if text is not None else _read_from_state_file(path, as_json=as_json)


def _read_from_state_file(path: Path | None, *, as_json: bool) -> str:
    # Imported here, because these imports take longer than the daemon needs to respond.
    from ingestd.commands.status import read_status  # noqa: PLC0415
    from ingestd.daemon.configuration import read_configuration  # noqa: PLC0415
    from ingestd.daemon.status_text import format_status  # noqa: PLC0415

    configuration = read_configuration(path, environment=os.environ, cwd=Path.cwd(), secrets=False)
    return format_status(read_status(configuration), as_json=as_json)
