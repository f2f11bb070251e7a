"""`ingestd status`."""

from __future__ import annotations

import dataclasses
import json

import click

from ingestd.cli.location import place
from ingestd.cli.options import observing
from ingestd.cli.rejected.presentation import column
from ingestd.core.clock import moment
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.status import Status, read_status
from ingestd.mirror.drift import DriftStatus
from ingestd.mirror.port import PipelineStatus, SinkStatus
from ingestd.mirror.rejections import Rejection


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@observing
def status(configuration: Configuration, as_json: bool) -> None:
    """Show what is delivered, what waits and what was rejected.

    Reads the state file and works whether the daemon runs or not; the first line says which.
    """
    found = read_status(configuration)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), ensure_ascii=False, indent=2))
    else:
        _tell(found)


def _tell(found: Status) -> None:
    runs = f"runs (process {found.pid})" if found.pid else "does not run"
    click.echo(f"The daemon {runs}. State file: {found.state}{'' if found.exists else ', not made yet'}.")
    click.echo(f"{found.pending} waiting, {found.rejected} rejected.")
    for failed in found.failed_parts:
        click.echo(
            f"{failed.part} failed {failed.failures} times since {moment(failed.since)}, starts again "
            f"{moment(failed.retry_at)}: {failed.sentence}. The log has the traceback; please report it."
        )
    for notice in found.notices:
        since = f" (since {moment(notice.since)})" if notice.since is not None else ""
        click.echo(f"{f'source {notice.pipeline}: ' if notice.pipeline else ''}{notice.sentence}{since}")
    for pipeline in found.pipelines:
        click.echo(f"pipeline {pipeline.name}: {_last_run(pipeline)}")
    for name in found.idle:
        click.echo(f"pipeline {name}: never ran")
    for sink in found.sinks:
        click.echo(sink_line(sink))
    for rejection in found.rejections:
        click.echo(f"rejected {_place(rejection)}: {rejection.reason}")
    if found.rejected > len(found.rejections):
        click.echo(
            f"and {found.rejected - len(found.rejections)} older rejections; 'ingestd rejected list' has them all"
        )
    if found.forgotten is not None:
        click.echo(
            f"{found.forgotten.count} rejections were forgotten as rejected.keep_days and rejected.keep_rows say, "
            f"the last {moment(found.forgotten.at)}"
        )


def sink_line(sink: SinkStatus) -> str:
    """A sink in one line: its numbers and, where something is in its way, what, since when, and what to do."""
    line = f"sink {sink.address}: {sink.entries} entries, {sink.pending} waiting, {sink.rejected} rejected"
    line += f"; {_drift(sink)}" if sink.drift is not None else ""
    line += f"; {_unexplained(sink)}" if sink.unexplained else ""
    line += f"; {sink.doubt} It is compared and repaired once its sources were read." if sink.doubt else ""
    if (trouble := sink.trouble) is not None and sink.pending:
        again = f"next try {moment(trouble.until)}"
        return f"{line}; {trouble.standing} since {moment(trouble.since)}, {again}: {trouble.sentence}"
    attempt = sink.last_attempt
    return line + (f"; last request: {attempt.sentence}" if attempt and attempt.outcome != "accepted" else "")


def _place(rejection: Rejection) -> str:
    where = f"{rejection.pipeline} · {place(rejection.partition, rejection.position)}{column(rejection)}"
    return where + (f" · key {rejection.key}" if rejection.key else "")


def _unexplained(sink: SinkStatus) -> str:
    if not sink.read:
        return f"{sink.unexplained} entries that no source has named so far; not all sources were read yet"
    return f"{sink.unexplained} that no source explains ('ingestd drift' lists them)"


def _drift(sink: SinkStatus) -> str:
    checked = sink.drift
    if checked is None:
        return "never read back"
    if checked.at is None:
        return f"could not be read back {moment(checked.tried_at)}: {checked.failure}"
    said = _differs(checked) if checked.found else "no drift" if sink.unexplained else "as delivered"
    failed = f" (not {moment(checked.tried_at)}: {checked.failure})" if checked.failure else ""
    return f"read back {moment(checked.at)}: {said}{failed}"


def _differs(checked: DriftStatus) -> str:
    return f"{checked.added} added, {checked.changed} changed, {checked.removed} removed by somebody else"


def _last_run(pipeline: PipelineStatus) -> str:
    if pipeline.failure:
        return f"failed: {pipeline.failure}"
    run = pipeline.last_run
    if pipeline.last_run_at is None or run is None:
        return "has not ended a run yet"
    changes = f"{run.created} created, {run.updated} updated, {run.removed} removed, {run.unchanged} unchanged"
    notice = f". {pipeline.notice}" if pipeline.notice else ""
    return f"last run {moment(pipeline.last_run_at)}: {run.records} records, {changes}, {run.rejected} rejected{notice}"
