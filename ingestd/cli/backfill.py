"""`ingestd backfill`: read a whole table again while its changes continue to arrive."""

from __future__ import annotations

from typing import Literal

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import CursorsMoved, MoveCursor
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("pipeline", type=PIPELINE)
@click.option("--cancel", is_flag=True, help="End a running backfill. Rows that it has read stay.")
@with_configuration_without_secrets
def backfill(configuration: Configuration, pipeline: str, cancel: bool) -> None:
    """Read a whole table again while its changes continue to arrive.

    For databases with `mode: changes`. Every row is mapped again, in pages of `batch_rows` rows between the changes. Equal
    values are not sent. The cursor has the progress, so a restart continues the backfill. A second call begins the backfill
    again. `ingestd status` shows the progress in a running daemon; `ingestd cursor show` shows the last stored progress.

    Exit codes: 0 done, 75 no backfill is possible or, with --cancel, no backfill runs.

    Example: ingestd backfill pdm
    """
    chosen_names(configuration, (pipeline,))
    action: Literal["backfill", "cancel"] = "cancel" if cancel else "backfill"
    configure_logs(level="warning")
    request = MoveCursor(pipeline=pipeline, partitions=(), action=action)
    _, by_daemon = execute(configuration, request, CursorsMoved)
    if cancel:
        echo(f"The backfill of pipeline '{pipeline}' is cancelled. Rows that it read stay as they are.")
        return
    by = "The daemon reads" if by_daemon else "The next 'ingestd sync' or 'ingestd run' reads"
    echo(f"The backfill of pipeline '{pipeline}' begins. {by} all rows again, in addition to the changes.")
