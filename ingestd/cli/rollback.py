"""`ingestd rollback`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import MAXYEAR

import click
import msgspec

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, json_option, with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.core.clock import moment, parse_time
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import RollBack, RunsUndone
from ingestd.daemon.control.time_zone import local_zone, zone_of
from ingestd.mirror.rollback import Rollback, RunSelection, UndoneRun
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo, echo_lines, safe_line


def _time(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Return seconds since the epoch. A time without a zone is in the zone in which times are printed without ``--utc``."""
    if text is None:
        return None
    try:
        at = parse_time(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}. Write a time as '2026-11-26 08:00'; without a zone it is local.") from error
    if not 1970 <= at.year < MAXYEAR:
        raise click.BadParameter(f"'{text}' is no time of a run. Write a time from 1970 to {MAXYEAR - 1}.")
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone_of(local_zone(os.environ)))).timestamp()


@click.command()
@click.argument("run", type=click.IntRange(min=1), required=False)
@click.option("--since", metavar="TIME", callback=_time, help="All runs that began at this time or later.")
@click.option("--pipeline", type=PIPELINE, default="", help="Only runs of this pipeline.")
@click.option("--sink", default="", help="Only runs that write this data sink, by its name or id.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option("Print the changes as JSON. Without --yes they are only planned.")
@with_configuration_without_secrets
def rollback(  # noqa: PLR0917 - click names them
    configuration: Configuration,
    run: int | None,
    since: float | None,
    pipeline: str,
    sink: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Restore the values that entries had before a RUN, or before all runs since a time.

    First the plan is shown. An entry gets its former value if it still has a value of these runs: entries that the runs created
    are removed, and entries that the runs removed are created again. Keys that changed later are listed, but not touched. This
    includes keys that a person changed in the service: the sinks are read to find them. If a daemon runs, it performs the
    rollback, and sends the values at once.

    The file or table of such a run is held: the same content is not delivered again, until it changes or 'ingestd approve'
    delivers it. Logs, queues and other sources of new records are not held, because they are not read again.

    Exit codes: 0 done, or there is nothing to restore; 1 the run cannot be rolled back, or you did not confirm.

    Example: ingestd rollback --since "2026-11-26 08:00" --pipeline bench
    """
    if (run is None) == (since is None):
        raise click.UsageError("Name a run or use --since TIME. 'ingestd trace KEY' shows the run of a value.")
    if pipeline:
        chosen_names(configuration, [pipeline])
    configure_logs(level="error")
    selection = RunSelection(run=run, since=since, pipeline=pipeline, sink=sink)
    is_plan = dry_run or not yes
    if as_json:
        response, _ = _response(configuration, RollBack(selection=selection, only_plan=is_plan))
        found = {"is_plan": is_plan, "unchecked": response.unchecked, **msgspec.to_builtins(response.done)}
        echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    if is_plan:
        response, _ = _response(configuration, RollBack(selection=selection, only_plan=True))
        plan = _done(response)
        echo_lines(map(safe_line, _plan_lines(plan, response.unchecked)))
        if dry_run or not plan.changed:
            return
        click.confirm("Restore these values?", abort=True, err=True)
    response, by_daemon = _response(configuration, RollBack(selection=selection, only_plan=False))
    done = _done(response)
    if yes:
        echo_lines(map(safe_line, _plan_lines(done, response.unchecked)))
    when = "The daemon sends them now." if by_daemon else "The next run or sync sends them."
    echo(f"Rolled back: {_numbers(done)}.{f' {when}' if done.changed else ''}")


def _response(configuration: Configuration, request: RollBack) -> tuple[RunsUndone, bool]:
    """Return the response, and whether a daemon gave it. Exit with 1 if the runs can't be rolled back."""
    response, by_daemon = execute(configuration, request, RunsUndone)
    if response.refusal:
        echo(response.refusal, err=True)
        sys.exit(1)
    return response, by_daemon


def _done(response: RunsUndone) -> Rollback:
    if response.done is None:
        raise TypeError("a response without a refusal says what was done")
    return response.done


def _numbers(found: Rollback) -> str:
    return f"{found.restored} restored, {found.removed} removed, {found.created} created; {found.left_count} left"


def _plan_lines(found: Rollback, unchecked: tuple[str, ...]) -> Iterator[str]:
    if not found.runs:
        yield "No run of this time has changed an entry."
        return
    first, last = found.runs[0], found.runs[-1]
    until = f" to {moment(last.started)}" if last is not first else ""
    yield f"{counted(len(found.runs), 'run')} that began {moment(first.started)}{until}; entries: {_numbers(found)}."
    for one in found.keys:
        yield f"  {one.sink} · {one.key}: {_value(one.now, one.now_type)} → {_value(one.restored, one.restored_type)}"
    if found.changed > len(found.keys):
        yield f"  and {found.changed - len(found.keys)} more"
    if found.left:
        yield "Left as they are:"
    for left in found.left:
        yield f"  {left.sink} · {left.key}: {left.reason}"
    if found.left_count > len(found.left):
        yield f"  and {found.left_count - len(found.left)} more"
    for sentence in unchecked:
        yield f"Not compared with the service, so changes by other programs may be overwritten: {sentence}"
    yield from _hold_lines({(run.pipeline, run.partition): run for run in found.runs})


def _hold_lines(last: dict[tuple[str, str], UndoneRun]) -> Iterator[str]:
    for run in last.values():
        about = f"{run.partition} (pipeline {run.pipeline})"
        if not run.is_changed:
            continue
        if run.is_held:
            again = f" or 'ingestd approve {run.held_run}' delivers it" if run.held_run is not None else ""
            yield f"{about} is held: its content is not delivered again, until it changes{again}."
        else:
            yield (
                f"{about} is not held: its source yields only new records, or no longer has the file or table, so"
                " nothing is read again."
            )


def _value(value: str | None, data_type: str | None) -> str:
    if data_type is None:
        return "no entry"
    return "null" if value is None else value
