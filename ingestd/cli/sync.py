"""`ingestd sync`."""

from __future__ import annotations

import sys

import click

from ingestd.cli.options import with_configuration
from ingestd.cli.progress import progress
from ingestd.daemon.configuration import Configuration, PipelineUnknown, chosen_pipelines
from ingestd.daemon.loop import run_to_end
from ingestd.daemon.one_shot_sync import SyncReport
from ingestd.daemon.one_shot_sync import sync as run_sync
from ingestd.daemon.reporting import held_line
from ingestd.process.logs import configure_logs
from ingestd.process.redaction import redact_text


@click.command()
@click.argument("pipelines", nargs=-1, metavar="[PIPELINE]...")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after this time.")
@with_configuration
def sync(configuration: Configuration, pipelines: tuple[str, ...], timeout: float | None) -> None:
    """Read every source once and deliver until nothing is pending.

    With names, only those pipelines are read. sync waits for files that are not stable yet. Entries that were pending before
    are delivered, too.

    Exit codes, the first that applies: 5 a source is unavailable or can't be used as configured; 4 entries are still pending
    (timeout, signal, or the service refuses the key); 8 the guard holds a run of these pipelines; 3 records, entries or whole
    files of these pipelines are rejected, by this run or an earlier one; 0 everything is delivered.
    """
    try:
        names = chosen_pipelines(configuration, pipelines)
    except PipelineUnknown as error:
        raise click.UsageError(str(error)) from error
    configure_logs(level="warning")
    with progress(terminal=sys.stdout.isatty()) as emit:
        report = run_to_end(run_sync(configuration, names, timeout_seconds=timeout, emit=emit))
    _print_report(report)
    sys.exit(report.exit_code)


def _print_report(report: SyncReport) -> None:
    sentences = [
        f"{one.pipeline}: {sentence}"
        for one in report.passes
        for sentence in (one.away, one.broken, *one.rejected)
        if sentence
    ]
    for sentence in dict.fromkeys(sentences):
        click.echo(redact_text(sentence), err=True)
    for held in report.held:
        click.echo(redact_text(held_line(held)), err=True)
    for lane in report.stuck:
        click.echo(redact_text(str(lane)), err=True)
    if report.interrupted == "timeout":
        click.echo("The timeout has expired. The next sync or run continues from here.", err=True)
    click.echo(f"{report.delivered} entries delivered, {report.pending} pending, {report.rejected} rejected.")
