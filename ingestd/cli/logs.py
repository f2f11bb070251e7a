"""`ingestd logs`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click

from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.logs.journal import JournalUnreadable
from ingestd.daemon.logs.reader import DaemonLog, NoLog, find_log
from ingestd.daemon.logs.selection import LEVELS, LogLine, LogSelection, earliest_time
from ingestd.process.terminal_text import echo

_LINES = 100


def _since(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> datetime | None:
    try:
        return earliest_time(text, now=datetime.now(UTC)) if text is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Then print lines when they are written, until Ctrl-C.")
@click.option(
    "--level", type=click.Choice(LEVELS), default="debug", help="The least severe level. Default: every line."
)
@click.option("--pipeline", default="", metavar="NAME", help="Only events of this pipeline.")
@click.option("--since", callback=_since, metavar="TIME", help="Only later events: 15m, or 2026-11-23T06:00 (UTC).")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0, max=1_000_000),
    metavar="N",
    help=f"Print at most the last N lines. Default: {_LINES}; with --since: all.",
)
@json_option("Print a JSON object an event, one a line.")
@with_configuration_without_secrets
def logs(  # noqa: PLR0917 - click names them
    configuration: Configuration,
    follow: bool,
    level: str,
    pipeline: str,
    since: datetime | None,
    count: int | None,
    as_json: bool,
) -> None:
    """Show the log of the daemon.

    Reads the file of the setting log.file with its rotated files (FILE.1, FILE.2.gz), or without that setting the journal of the
    systemd unit log.unit. Lines that are no events, such as a message of the interpreter, are shown only without --level,
    --pipeline and --since.

    Exit codes: 0 done, 1 there is no log, or it can't be read; 130 Ctrl-C.

    Example: ingestd logs --follow --level warning --pipeline mass-budget
    """
    selection = LogSelection(level=level, pipeline=pipeline, since=since)
    show: Callable[[LogLine], str] = LogLine.as_json if as_json else LogLine.formatted
    if count is None and since is None:
        count = _LINES
    printed = False
    try:
        reader = DaemonLog(log=find_log(configuration.settings.log), selection=selection)
        for line in reader.all_lines(count=count) if follow else reader.last_lines(count=count):
            echo(show(line))
            printed = True
    except (NoLog, JournalUnreadable) as error:
        echo(str(error), err=True)
        sys.exit(1)
    except EOFError as error:
        echo(f"A rotated file of the log is incomplete: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        echo(f"The log {error.filename} can't be read: {error.strerror or error}.", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    if not printed:
        echo("The log has no such lines.", err=True)
