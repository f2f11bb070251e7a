"""`ingestd rejected retry`."""

from __future__ import annotations

import asyncio

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.rejected.selection import all_option, require_explicit, with_selection
from ingestd.commands.control_client import execute
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import RetryRejected
from ingestd.mirror.rejections import Retried, Selection
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo
from ingestd.telemetry import log_event


@click.command()
@all_option
@with_configuration_without_secrets
@with_selection
def retry(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Retry rejections.

    Entries that the service refused are sent again unchanged. Records are mapped again when their file or table is read next: at
    once if a daemon watches it, else by its schedule or by the next run or sync. An archived file must be put back first. A
    record remains in the list until then.

    Example: ingestd rejected retry --reason 'read-only'
    """
    request = RetryRejected(selection=require_explicit(selection, everything=everything))
    configure_logs()
    response, by_daemon = asyncio.run(execute(configuration, request, emit=log_event))
    if isinstance(response, Retried):
        echo("\n".join(_lines(response, by_daemon=by_daemon)))


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
            "Archived files must be put back for that."
        )
    return lines or ["No rejection matches."]
