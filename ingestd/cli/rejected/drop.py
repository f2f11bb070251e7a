"""`ingestd rejected drop`."""

from __future__ import annotations

import asyncio

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.rejected.selection import all_option, require_explicit, with_selection
from ingestd.commands.control_client import execute
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import DropRejected
from ingestd.mirror.rejections import Selection
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo
from ingestd.telemetry import log_event


@click.command()
@all_option
@with_configuration_without_secrets
@with_selection
def drop(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Delete rejections; the log keeps the account and the selection.

    The values of a dropped record or entry are not delivered: the service keeps the values that it has. The record is mapped
    again when it changes at its source, or when its whole file is read again (after the file is replaced or the mapping
    changes). To keep a copy, use `export` first.

    Example: ingestd rejected drop --file run-0042.csv
    """
    request = DropRejected(selection=require_explicit(selection, everything=everything))
    configure_logs()
    count, _ = asyncio.run(execute(configuration, request, emit=log_event))
    if not isinstance(count, int) or not count:
        echo("No rejection matches.")
    else:
        echo(f"{counted(count, 'rejection')} dropped. The service keeps its values until the source changes.")
