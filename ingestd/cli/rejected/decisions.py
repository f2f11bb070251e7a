"""`ingestd rejected retry` and `drop`."""

from __future__ import annotations

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.rejected.selection import all_option, require_explicit, with_selection
from ingestd.commands.control_client import execute
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import DropRejected, RetryRejected
from ingestd.mirror.rejections import Retried, Selection
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo


@click.command()
@all_option
@with_configuration_without_secrets
@with_selection
def retry(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Retry rejections.

    Entries that the service refused are sent again unchanged. Records are mapped again when their file or table is read next:
    at once if a daemon watches it, else by its schedule or by the next run or sync. An archived file must be put back first. A
    record remains in the list until it is mapped again.

    Example: ingestd rejected retry --reason 'read-only'
    """
    request = RetryRejected(selection=require_explicit(selection, everything=everything))
    configure_logs()
    done, by_daemon = execute(configuration, request, Retried)
    echo("\n".join(_lines(done, by_daemon=by_daemon)))


def _lines(done: Retried, *, by_daemon: bool) -> list[str]:
    lines = []
    if done.entries:
        them = "it" if done.entries == 1 else "them"
        when = f"The daemon sends {them} now." if by_daemon else f"The next run or sync sends {them}."
        lines.append(f"Pending again: {counted(done.entries, 'entry')}. {when}")
    if done.records:
        names = ", ".join(done.pipelines)
        lines.append(
            f"Mapped again when {names} is read next: {counted(done.records, 'record')}. "
            "For that, archived files must be put back into their folder."
        )
    return lines or ["No rejection matches."]


@click.command()
@all_option
@with_configuration_without_secrets
@with_selection
def drop(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Delete rejections. The log records the user account and the selection.

    The values of a dropped record or entry are not delivered: the service keeps the values that it has. The record is mapped
    again when it changes at its source, or when its whole file is read again (after the file is replaced or the mapping
    changes). To keep a copy, use `export` first.

    Example: ingestd rejected drop --file run-0042.csv
    """
    request = DropRejected(selection=require_explicit(selection, everything=everything))
    configure_logs()
    count, _ = execute(configuration, request, int)
    if not count:
        echo("No rejection matches.")
    else:
        echo(f"{counted(count, 'rejection')} dropped. The service keeps its values until the source changes.")
