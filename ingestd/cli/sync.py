"""`ingestd sync`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, utc_option, with_configuration
from ingestd.cli.progress import progress
from ingestd.commands.loop import run_to_end
from ingestd.commands.one_shot_sync import SyncReport
from ingestd.commands.one_shot_sync import sync as run_sync
from ingestd.commands.status import refuse_on_standby
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.pipeline_states import pause_sentence
from ingestd.daemon.reporting import held_line
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo, safe_line

_DIFFERENCES = 10
"""Maximum number of differences that are printed."""


@click.command()
@click.argument("pipelines", type=PIPELINE, nargs=-1, metavar="[PIPELINE]...")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after this time.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Execute exactly the plan in a file of 'ingestd plan --save', or change nothing.",
)
@utc_option
@with_configuration
def sync(
    configuration: Configuration, pipelines: tuple[str, ...], timeout: float | None, plan_file: Path | None
) -> None:
    """Read every source once and deliver until nothing is pending.

    With names, only those pipelines are read. sync waits for files that are not stable yet. Entries that were pending before
    are delivered, too. A paused pipeline is neither read nor delivered.

    With --plan, the pipelines of the plan are read again. If the configuration, the state, a source or the effect differs from
    the plan, the command prints the differences, and delivers nothing. A run that the guard holds in the plan is held.

    Exit codes (the first that applies): 5 a source is unavailable or can't be used as configured; 4 entries are still pending
    (timeout, signal, or the service refuses the key); 8 one of these pipelines has a held run, or is paused; 3 records,
    entries or whole files of these pipelines are rejected, by this run or an earlier one; 0 everything is delivered. With
    --plan also: 10 the plan is refused; 130 or 143 a signal ended the command before anything was delivered.

    Example: ingestd sync mass-budget --timeout 60
    """
    names = chosen_names(configuration, pipelines)
    configure_logs(level="warning", json=False)
    refuse_on_standby(configuration.settings.state)
    if plan_file is not None:
        report = _sync_planned(configuration, pipelines, timeout, plan_file)
    else:
        with progress(terminal=sys.stdout.isatty()) as emit:
            report = run_to_end(run_sync(configuration, names, timeout_seconds=timeout, emit=emit))
    _print_report(report)
    sys.exit(report.exit_code)


def _sync_planned(
    configuration: Configuration, pipelines: tuple[str, ...], timeout: float | None, plan_file: Path
) -> SyncReport:
    # Imported here, because most syncs have no plan.
    from ingestd.commands.sync_plan.execution import Interrupted, sync_planned  # noqa: PLC0415
    from ingestd.commands.sync_plan.values import PlanUnusable, read_plan  # noqa: PLC0415

    if pipelines:
        raise click.UsageError("--plan takes no names of pipelines: the plan has them. Name them for 'ingestd plan'.")
    try:
        saved = read_plan(plan_file)
    except PlanUnusable as error:
        raise click.UsageError(str(error)) from error
    try:
        with progress(terminal=sys.stdout.isatty()) as emit:
            done = run_to_end(sync_planned(configuration, saved, timeout_seconds=timeout, emit=emit))
    except Interrupted as interrupted:
        sys.exit(interrupted.exit_status)
    if isinstance(done, SyncReport):
        return done
    for difference in done.differences[:_DIFFERENCES]:
        echo(safe_line(difference), err=True)
    if len(done.differences) > _DIFFERENCES:
        echo(f"{counted(len(done.differences) - _DIFFERENCES, 'more difference')}.", err=True)
    echo(f"The plan {plan_file} is refused, and nothing was delivered. Make a new plan with 'ingestd plan'.", err=True)
    sys.exit(ExitCode.PLAN_REFUSED)


def _print_report(report: SyncReport) -> None:
    for pipeline, sentence in report.failures:
        echo(safe_line(f"{pipeline}: {sentence}"), err=True)
    for pause in report.paused:
        echo(safe_line(f"{pause.pipeline}: {pause_sentence(pause)}"), err=True)
    for held in report.held:
        echo(safe_line(held_line(held)), err=True)
    for lane in report.stuck:
        echo(safe_line(str(lane)), err=True)
    if report.interrupted == "timeout":
        echo("The timeout has expired. The next sync or run continues from here.", err=True)
    echo(f"{counted(report.delivered, 'entry')} delivered, {report.pending} pending, {report.rejected} rejected.")
