"""`ingestd cursor`: show and move the cursors of a pipeline's partitions."""

from __future__ import annotations

import json
from typing import Any, Literal

import click
import msgspec

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, json_option, with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.commands.status import observe, refuse_on_standby
from ingestd.core.clock import moment
from ingestd.core.phrases import counted, nearest
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import CursorsMoved, MoveCursor
from ingestd.mirror.reports import StoredCursor
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo, terminal_line


@click.group()
def cursor() -> None:
    """Show or move the cursors of partitions: where the next reading of a file, log or table begins.

    Nothing is lost: the delivered values stay known. Records that are read again are compared, and equal values are not sent.
    The cursor is moved between two passes: by the daemon, or directly in the state file if no daemon runs.

    Example: ingestd cursor show mass-budget
    """


@cursor.command()
@click.argument("pipeline", type=PIPELINE)
@click.argument("partitions", nargs=-1, metavar="[PARTITION]...")
@json_option("Print a JSON list with an object for each partition.")
@with_configuration_without_secrets
def show(configuration: Configuration, pipeline: str, partitions: tuple[str, ...], as_json: bool) -> None:
    """Show the cursor of each partition of PIPELINE as JSON, with the time and the pending entries.

    Without names, the partitions that the source still has are shown.

    Example: ingestd cursor show bench-log run.log
    """
    found = _stored(configuration, pipeline, partitions)
    if as_json:
        echo(json.dumps([msgspec.to_builtins(one) for one in found], ensure_ascii=False, indent=2))
        return
    for one in found:
        read = f"read {moment(one.at)}" if one.at is not None else "never read"
        echo(f"{terminal_line(one.partition)}: {read}; {one.pending} pending, {one.rejected} rejected")
        echo(f"  {json.dumps(one.cursor, ensure_ascii=False) if one.cursor is not None else 'no cursor'}")
    if not found:
        echo(f"Pipeline '{pipeline}' has read nothing yet.")


@cursor.command("set")
@click.argument("pipeline", type=PIPELINE)
@click.argument("partition")
@click.argument("value", metavar="JSON")
@with_configuration_without_secrets
def set_(configuration: Configuration, pipeline: str, partition: str, value: str) -> None:
    """Store a cursor that `show` printed: the next reading of PARTITION begins there.

    Records between the former and a later cursor are not read.

    Example: ingestd cursor set bench-log run.log "$(cat saved-cursor.json)"
    """
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise click.UsageError(f"The cursor is no JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise click.UsageError("A cursor is a JSON object, as 'ingestd cursor show' prints it.")
    _move(configuration, pipeline, (partition,), "set", value=parsed)


@cursor.command()
@click.argument("pipeline", type=PIPELINE)
@click.argument("partition")
@click.argument("to")
@with_configuration_without_secrets
def rewind(configuration: Configuration, pipeline: str, partition: str, to: str) -> None:
    """Move the cursor back TO a value of the cursor column: a time or a number.

    For databases with `mode: changes` and a cursor column. Other cursors can't be moved back to a value: use `reset`.

    Exit codes: 0 done, 75 this cursor can't be moved back to the value.

    Example: ingestd cursor rewind pdm parts 2026-11-01T00:00:00Z
    """
    _move(configuration, pipeline, (partition,), "rewind", to=to)


@cursor.command()
@click.argument("pipeline", type=PIPELINE)
@click.argument("partitions", nargs=-1, metavar="[PARTITION]...")
@click.option("--all", "everything", is_flag=True, help="All partitions that the source still has.")
@with_configuration_without_secrets
def reset(configuration: Configuration, pipeline: str, partitions: tuple[str, ...], everything: bool) -> None:
    """Make the next pass read partitions from the beginning. Equal values are not sent again.

    Example: ingestd cursor reset mass-budget --all
    """
    if bool(partitions) == everything:
        raise click.UsageError("Name the partitions, or use --all.")
    _move(configuration, pipeline, partitions, "reset")


def _move(
    configuration: Configuration,
    pipeline: str,
    partitions: tuple[str, ...],
    action: Literal["set", "rewind", "reset"],
    *,
    value: dict[str, Any] | None = None,
    to: str = "",
) -> None:
    _stored(configuration, pipeline, partitions)
    request = MoveCursor(pipeline=pipeline, partitions=partitions, action=action, cursor=value, to=to)
    configure_logs(level="warning")
    moved, by_daemon = execute(configuration, request, CursorsMoved)
    then = "The daemon reads from there." if by_daemon else "The next 'ingestd sync' or 'ingestd run' reads from there."
    echo(f"{counted(len(moved.partitions), 'cursor')} of pipeline '{pipeline}' moved. {then}")


def _stored(configuration: Configuration, pipeline: str, partitions: tuple[str, ...]) -> list[StoredCursor]:
    """Return the stored cursors of ``partitions``, or of all partitions of the source if ``partitions`` is empty.

    Raises:
        click.UsageError: there is no such pipeline or partition.
    """
    chosen_names(configuration, (pipeline,))
    refuse_on_standby(configuration.settings.state)
    with observe(configuration) as mirror:
        found = mirror.cursors(pipeline, partitions)
        known = {one.partition for one in found}
        for name in partitions:
            if name not in known:
                names = [one.partition for one in mirror.cursors(pipeline)]
                raise click.UsageError(f"Pipeline '{pipeline}' has read no partition '{name}'.{nearest(name, names)}")
    return found
