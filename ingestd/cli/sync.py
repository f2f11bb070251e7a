"""`ingestd sync`."""

from __future__ import annotations

import sys

import click

from ingestd.cli.options import configured
from ingestd.cli.progress import progress
from ingestd.daemon.configuration import Configuration, PipelineUnknown, chosen_pipelines
from ingestd.daemon.loop import run_to_end
from ingestd.daemon.one_shot_sync import SyncReport
from ingestd.daemon.one_shot_sync import sync as run_sync
from ingestd.process.logs import configure_logs
from ingestd.process.redaction import redact_text


@click.command()
@click.argument("pipelines", nargs=-1, metavar="[PIPELINE]...")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop waiting after so long.")
@configured
def sync(configuration: Configuration, pipelines: tuple[str, ...], timeout: float | None) -> None:
    """Read every source once and deliver until nothing is pending.

    With names, only those pipelines are read. Files that have not stood still for their settle time are waited for.
    What was pending before is delivered too.

    Exit codes, the first that applies: 5 a source is away or can't be used as configured; 4 something is still pending
    (the timeout is over, a signal came, or the service refuses the key); 3 records or entries of these pipelines are
    rejected, or a file as a whole is, by this run or an earlier one; 0 everything is delivered.
    """
    try:
        names = chosen_pipelines(configuration, pipelines)
    except PipelineUnknown as error:
        raise click.UsageError(str(error)) from error
    configure_logs(level="warning")
    with progress(terminal=sys.stdout.isatty()) as emit:
        report = run_to_end(run_sync(configuration, names, timeout_seconds=timeout, emit=emit))
    _tell(report)
    sys.exit(report.exit_code)


def _tell(report: SyncReport) -> None:
    sentences = [
        f"{one.pipeline}: {sentence}"
        for one in report.passes
        for sentence in (one.away, one.broken, *one.parked)
        if sentence
    ]
    for sentence in dict.fromkeys(sentences):
        click.echo(redact_text(sentence), err=True)
    for lane in report.stuck:
        click.echo(redact_text(str(lane)), err=True)
    if report.interrupted == "timeout":
        click.echo("The timeout is over; the next sync or run goes on from here.", err=True)
    click.echo(f"{report.delivered} entries delivered, {report.pending} waiting, {report.rejected} rejected.")
