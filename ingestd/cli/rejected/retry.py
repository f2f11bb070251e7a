"""`ingestd rejected retry`."""

from __future__ import annotations

import asyncio

import click

from ingestd.cli.options import observing
from ingestd.cli.rejected.selection import chosen, everything, meant
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import RetryRejected
from ingestd.daemon.control_client import ask
from ingestd.mirror.rejections import Retried, Selection
from ingestd.process.logs import configure_logs
from ingestd.telemetry import log_event


@click.command()
@everything
@observing
@chosen
def retry(selection: Selection, configuration: Configuration, everything: bool) -> None:
    """Put rejections back.

    Entries that the service refused are sent again as they are. Records are mapped again when their file or table is read next:
    at once where a daemon watches it, else at its schedule or by the next run or sync. A file that was archived meanwhile has to
    be put back first. Until then a record stays listed.
    """
    request = RetryRejected(selection=meant(selection, everything=everything))
    configure_logs()
    answer, by_daemon = asyncio.run(ask(configuration, request, emit=log_event))
    if isinstance(answer, Retried):
        click.echo("\n".join(_told(answer, by_daemon=by_daemon)))


def _told(done: Retried, *, by_daemon: bool) -> list[str]:
    lines = []
    if done.entries:
        when = "by the daemon now" if by_daemon else "with the next run or sync"
        lines.append(f"{_counted(done.entries, 'entry', 'entries')} pending again, and sent {when}.")
    if done.records:
        names = ", ".join(done.pipelines)
        lines.append(
            f"{_counted(done.records, 'record', 'records')} to be mapped again at the next reading of {names}. "
            "A file that was archived has to be put back for that."
        )
    return lines or ["Nothing that is rejected fits that."]


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one} is" if count == 1 else f"{count} {more} are"
