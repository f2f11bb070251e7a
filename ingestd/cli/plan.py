"""`ingestd plan`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, json_option, with_configuration
from ingestd.cli.progress import reading_progress
from ingestd.commands.loop import run_to_end
from ingestd.commands.output_file import OutputUnwritable, write_private
from ingestd.commands.status import refuse_on_standby
from ingestd.commands.sync_plan.execution import Interrupted
from ingestd.commands.sync_plan.execution import plan as make_plan
from ingestd.commands.sync_plan.values import PartitionPlan, PlannedChange, SyncPlan, encode_plan
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.reporting import format_location
from ingestd.process.logs import configure_logs
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo, safe_line
from ingestd.telemetry import log_event

_FILE = click.Path(path_type=Path, dir_okay=False)
_CHARACTERS = 200
"""Maximum length of a key or value in a line."""
_SIGNS = {"created": "+", "changed": "~", "removed": "-"}


@click.command()
@click.argument("pipelines", type=PIPELINE, nargs=-1, metavar="[PIPELINE]...")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most N changes of each kind, and N rejected records, for each file or table. The counts include all.",
)
@json_option("Print one JSON object.")
@click.option("--save", type=_FILE, metavar="FILE", help="Also write the plan for 'ingestd sync --plan FILE'.")
@click.option("--exit-code", "as_code", is_flag=True, help="Report what a sync would do by the exit code.")
@with_configuration
def plan(  # noqa: PLR0917 - click names them
    configuration: Configuration,
    pipelines: tuple[str, ...],
    rows: int,
    as_json: bool,
    save: Path | None,
    as_code: bool,
) -> None:
    """Show what a sync would do now. Nothing is delivered, stored, archived or deleted.

    Reads every source, or only the sources of the named pipelines, once with the current configuration. Compares the result
    with the state file. Paused pipelines are not read. No request is sent to the service. A daemon may run at the same time and
    is not delayed.

    The file of --save has mode 0600, because it contains values. The state file is copied to a temporary folder, in TMPDIR,
    which needs space for two copies.

    Exit codes: 5 a source is unavailable or can't be used as configured; 0 the plan is complete. With --exit-code, the first of
    these codes that applies: 5; 8 the guard would hold a run, or a pipeline is paused; 9 entries would be created, changed,
    removed or delivered; 3 only records would be rejected; 0 a sync has nothing to do. 73 the FILE can't be written; 130 or 143
    a signal ended the command.

    Example: ingestd plan mass-budget --rows 3
    """
    names = chosen_names(configuration, pipelines)
    configure_logs(level="error")
    refuse_on_standby(configuration.settings.state)
    try:
        with reading_progress(terminal=sys.stderr.isatty()) as on_records:
            made = run_to_end(make_plan(configuration, names, rows=rows, emit=log_event, on_records=on_records)).plan
        if save is not None:
            write_private(save, encode_plan(made))
    except Interrupted as interrupted:
        sys.exit(interrupted.exit_status)
    except OutputUnwritable as error:
        echo(redact_text(str(error)), err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    if as_json:
        echo(encode_plan(made).decode(), nl=False)
    else:
        _print_plan(made, rows)
    sys.exit(_exit_code(made, in_full=as_code))


def _exit_code(made: SyncPlan, *, in_full: bool) -> ExitCode:
    if any(one.failures for one in made.pipelines):
        return ExitCode.SOURCE_FAILED
    if not in_full:
        return ExitCode.DONE
    if any(one.held for one in made.partitions) or any(one.paused for one in made.pipelines):
        return ExitCode.HELD
    if any(one.has_changes for one in made.partitions) or any(one.pending or one.unexplained for one in made.sinks):
        return ExitCode.CHANGES
    return ExitCode.REJECTED if any(one.rejected for one in made.partitions) else ExitCode.DONE


def _print_plan(made: SyncPlan, rows: int) -> None:
    for pipeline in made.pipelines:
        for failure in pipeline.failures:
            echo(safe_line(f"{pipeline.name}: {failure}"), err=True)
        if pipeline.paused:
            echo(safe_line(f"{pipeline.name}: {pipeline.paused}"), err=True)
        partitions = [one for one in made.partitions if one.pipeline == pipeline.name]
        echo(
            f"pipeline {pipeline.name} → {pipeline.sink}: files or tables with new content: {len(partitions)}, "
            f"without: {pipeline.skipped}"
        )
        for one in partitions:
            for line in partition_lines(one, rows):
                echo(f"  {safe_line(line)}")
    for sink in made.sinks:
        if not sink.known:
            echo(
                f"The content of the sink {sink.name} is not known yet: the next sync finds or creates the sink. It does "
                "not send entries that the sink already has."
            )
        if sink.pending:
            echo(f"Pending in the sink {sink.name} from before: {counted(sink.pending, 'entry')}.")
        if sink.unexplained:
            echo(
                f"No source names {counted(sink.unexplained, 'entry')} of the sink {sink.name} any more. A sync removes such "
                "entries after it has compared the sink; 'sync --plan' keeps them."
            )
    changing = [one for one in made.partitions if one.has_changes]
    created, changed, removed = (
        sum(counts)
        for counts in zip((0, 0, 0), *((one.created, one.changed, one.removed) for one in changing), strict=True)
    )
    held = sum(bool(one.held) for one in made.partitions)
    echo(
        f"A sync would create {created}, change {changed} and remove {counted(removed, 'entry')}, reject "
        f"{sum(one.rejected for one in made.partitions)}, and hold {counted(held, 'run')}. Nothing was written."
    )


def partition_lines(one: PartitionPlan, rows: int, *, more: str = "; --rows N shows more") -> Iterator[str]:
    """Yield the lines of a plan about a file or table.

    ``rows``: the maximum number of changes and rejects of each kind. ``more``: the hint on how to see more changes.
    """
    verdict = "would be held; " if one.held else ""
    yield f"{one.partition}: {counted(one.records, 'record')}, {one.rejected} rejected; {verdict}entries: {one.counts}"
    if one.notice:
        yield f"  {one.notice}"
    yield from (f"  held: {reason}" for reason in one.held)
    yield from (f"  {_line(one.partition, change)}" for change in one.changes)
    hidden = sum(max(0, count - rows) for count in (one.created, one.changed, one.removed))
    if hidden:
        yield f"  … {counted(hidden, 'more change')}{more}"
    for reject in one.rejects:
        yield f"  rejected {format_location(one.partition, reject.position)}: {reject.reason}"
    if one.rejected > len(one.rejects):
        yield f"  … {one.rejected - len(one.rejects)} more rejected"


def _line(partition: str, change: PlannedChange) -> str:
    values = [
        f"{'null' if value is None else _cut(value)} ({data_type})"
        for value, data_type in ((change.old, change.old_type), (change.new, change.new_type))
        if data_type is not None
    ]
    at = f"  [{format_location(partition, change.position)}]" if change.position is not None else ""
    return f"{_SIGNS[change.kind]} {_cut(change.key)}: {' → '.join(values)}{at}"


def _cut(text: str) -> str:
    text = redact_text(text)  # a part of a secret would not be recognised
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
