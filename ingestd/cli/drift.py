"""`ingestd drift`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence

import click

from ingestd.cli.options import configured
from ingestd.core.clock import moment
from ingestd.daemon.asking import ask
from ingestd.daemon.configuration import Configuration, PipelineUnknown, chosen_pipelines
from ingestd.daemon.control.requests import CheckDrift
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.status import observed
from ingestd.delivery.drift import Checked
from ingestd.mirror.drift import START, DriftReader, Finding
from ingestd.process.logs import configure_logs
from ingestd.process.redaction import redact_text
from ingestd.settings.drift import Mode
from ingestd.telemetry import log_event

_PAGE = 1_000


@click.command()
@click.argument("pipelines", nargs=-1, metavar="[PIPELINE]...")
@click.option("--repair", is_flag=True, help="Send again what others changed or removed.")
@click.option("--adopt", is_flag=True, help="Take the service's values for the truth.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@configured
def drift(configuration: Configuration, pipelines: tuple[str, ...], repair: bool, adopt: bool, form: str) -> None:
    """Read sinks back and list the keys that somebody else added, changed or removed.

    Without names, the sinks of all pipelines. What waits, is in flight or is rejected is no drift, and neither is a key that
    stood in the sink before it was found. Keys that others have added are only told, unless the pipeline says
    'drift: {added: remove}'. Adopted values stand until their records are read anew. The daemon does the reading where one runs.

    Exit codes: 0 no drift; 6 keys differed, be it repaired now or not; 7 a sink could not be read.
    """
    if repair and adopt:
        raise click.UsageError("Either --repair or --adopt.")
    try:
        names = chosen_pipelines(configuration, pipelines)
    except PipelineUnknown as error:
        raise click.UsageError(str(error)) from error
    configure_logs(level="error")
    mode: Mode = "repair" if repair else "adopt" if adopt else "report"
    answer, by_daemon = asyncio.run(ask(configuration, CheckDrift(pipelines=tuple(names), mode=mode), emit=log_event))
    checked = answer if isinstance(answer, tuple) else ()
    with observed(configuration) as mirror:
        found = False
        for finding in _findings(mirror, names):
            found = True
            click.echo(
                json.dumps(dataclasses.asdict(finding), ensure_ascii=False) if form == "json" else _line(finding)
            )
    for one in checked:
        click.echo(redact_text(_summary(one, mode, by_daemon=by_daemon)), err=form == "json")
    sys.exit(_exit_code(checked, found=found))


def _exit_code(checked: Sequence[Checked], *, found: bool) -> ExitCode:
    if any(one.status is not None and one.status.failure for one in checked):
        return ExitCode.SINK_UNREADABLE
    return ExitCode.DRIFT if found else ExitCode.DONE


def _findings(mirror: DriftReader, names: Sequence[str]) -> Iterator[Finding]:
    after: tuple[int, str] | None = START
    while after is not None:
        page = mirror.drift(names, after=after, limit=_PAGE)
        yield from page.findings
        after = page.next


def _line(finding: Finding) -> str:
    has = _value(finding.found, finding.found_type)
    delivered = f"delivered was {_value(finding.wanted, finding.wanted_type)}"
    said = {
        "added": f"added by somebody else: {has}",
        "changed": f"changed by somebody else: {has}; {delivered}",
        "removed": f"removed by somebody else; {delivered}",
    }[finding.what]
    answer = f" ({finding.answer})" if finding.answer else ""
    return f"{finding.sink} in {finding.workspace} · {finding.key} {said}, known since {moment(finding.since)}{answer}"


def _value(value: str | None, data_type: str) -> str:
    text = "no value" if value is None else json.dumps(value, ensure_ascii=False)
    return f"{text} ({data_type})" if data_type else text


def _summary(checked: Checked, mode: Mode, *, by_daemon: bool) -> str:
    status = checked.status
    if status is None:
        return f"{checked.sink}: nothing was delivered to it yet."
    if status.failure:
        last = f" It was last read {moment(status.at)}." if status.at is not None else ""
        return f"{checked.sink}: not compared. {status.failure}{last}"
    if not status.found:
        return f"{checked.sink}: {status.entries} entries, as delivered."
    counts = f"{status.added} added, {status.changed} changed, {status.removed} removed by somebody else"
    return (
        f"{checked.sink}: {status.entries} entries; {counts}{_answered(checked.answered, mode, by_daemon=by_daemon)}."
    )


def _answered(count: int, mode: Mode, *, by_daemon: bool) -> str:
    if not count:
        return ""
    if mode == "adopt":
        return f"; {count} adopted"
    return f"; the daemon sends {count} of them again" if by_daemon else f"; {count} sent again"
