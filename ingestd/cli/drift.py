"""`ingestd drift`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import click
import msgspec

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, json_option, with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.commands.status import observe
from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import CheckDrift
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.reporting import by_whom
from ingestd.delivery.drift import DriftCheckResult
from ingestd.mirror.drift import START, DriftFinding, Unexplained
from ingestd.mirror.sqlite import Observer
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo, echo_lines, safe_line, terminal_line
from ingestd.settings.drift import Mode

_PAGE = 1_000
_SHOWN = 20
"""The maximum number of unexplained entries that the text output lists for each sink."""


@click.command()
@click.argument("pipelines", type=PIPELINE, nargs=-1, metavar="[PIPELINE]...")
@click.option("--repair", is_flag=True, help="Send the delivered values of changed and removed keys again.")
@click.option("--adopt", is_flag=True, help="Accept the service's values.")
@click.option(
    "--all", "every", is_flag=True, help=f"List all unexplained entries, not only the first {_SHOWN} of each sink."
)
@json_option("Print one JSON object for each key, one per line; the summaries go to standard error.")
@with_configuration_without_secrets
def drift(  # noqa: PLR0917 - click names them
    configuration: Configuration, pipelines: tuple[str, ...], repair: bool, adopt: bool, every: bool, as_json: bool
) -> None:
    """Read sinks back and list the keys that others changed: keys that were added, updated or removed.

    Without names, the sinks of all pipelines are read. Entries that are pending, in flight or rejected are not drift. Keys that
    others added are only listed, unless the pipeline has 'drift: {added: remove}'. Adopted values remain until their records
    are read again. If a daemon runs, it reads the sinks.

    Entries that no source explains are listed too. Either no source has named such an entry since the sink was first read, or
    an earlier state file, pipeline or mapping left it. These entries are not drift. The setting 'unexplained' of a pipeline
    decides which of these entries 'run' and 'sync' remove.

    Exit codes: 0 no drift; 6 keys differed, repaired or not; 7 a sink could not be read.

    Example: ingestd drift mass-budget --repair
    """
    if repair and adopt:
        raise click.UsageError("--repair and --adopt exclude each other. Use one of them.")
    names = chosen_names(configuration, pipelines)
    configure_logs(level="error")
    mode: Mode = "repair" if repair else "adopt" if adopt else "report"
    request = CheckDrift(pipelines=tuple(names), mode=mode)
    checked, by_daemon = execute(configuration, request, tuple)
    with observe(configuration) as mirror:
        found = echo_lines(
            json.dumps(msgspec.to_builtins(finding), ensure_ascii=False) if as_json else terminal_line(_line(finding))
            for finding in _findings(mirror, names)
        )
        echo_lines(_unexplained_lines(mirror, names, as_json=as_json, every=every))
    for one in checked:
        echo(safe_line(_summary(one, mode, by_daemon=by_daemon)), err=as_json)
    sys.exit(_exit_code(checked, found=found > 0))


def _exit_code(checked: Sequence[DriftCheckResult], *, found: bool) -> ExitCode:
    if any(one.status is not None and one.status.failure for one in checked):
        return ExitCode.SINK_UNREADABLE
    return ExitCode.DRIFT if found or any(one.lost for one in checked) else ExitCode.DONE


def _findings(mirror: Observer, names: Sequence[str]) -> Iterator[DriftFinding]:
    after: tuple[int, str] | None = START
    while after is not None:
        page = mirror.drift(names, after=after, limit=_PAGE)
        yield from page.findings
        after = page.next


def _unexplained_lines(mirror: Observer, names: Sequence[str], *, as_json: bool, every: bool) -> Iterator[str]:
    """Yield a line for each entry that no source explains. Text without ``every`` lists only the first entries of a sink."""
    shown: Counter[str] = Counter()
    after: tuple[int, str] | None = START
    while after is not None:
        page = mirror.unexplained(names, after=after, limit=_PAGE)
        for one in page.entries:
            sink = f"{one.sink} in {one.workspace}"
            shown[sink] += 1
            if as_json:
                yield json.dumps({"what": "unexplained", **msgspec.to_builtins(one)}, ensure_ascii=False)
            elif every or shown[sink] <= _SHOWN:
                line = f"{sink} · {one.key} no source explains: {_value(one.value, one.data_type)}; {_why(one)}"
                yield terminal_line(line)
        after = page.next
    for sink, count in shown.items():
        if not as_json and not every and count > _SHOWN:
            yield f"{sink} · {count - _SHOWN} more entries that no source explains; 'ingestd drift --all' lists them"


def _why(one: Unexplained) -> str:
    return {
        "found": "it was found in the service",
        "inactive": f"pipeline '{one.pipeline}' wrote it and is no longer configured",
        "elsewhere": f"pipeline '{one.pipeline}' wrote it and now writes another sink",
        "retired": f"pipeline '{one.pipeline}' wrote it and now reads another source",
    }[one.why]


def _line(finding: DriftFinding) -> str:
    found = _value(finding.found, finding.found_type)
    delivered = f"the delivered value is {_value(finding.wanted, finding.wanted_type)}"
    change = {
        "added": f"added {by_whom(finding)}: {found}",
        "changed": f"changed {by_whom(finding)}: {found}; {delivered}",
        "removed": f"removed {by_whom(finding)}; {delivered}",
    }[finding.what]
    reaction = f" ({finding.reaction})" if finding.reaction else ""
    return (
        f"{finding.sink} in {finding.workspace} · {finding.key} {change}, known since {moment(finding.since)}{reaction}"
    )


def _value(value: str | None, data_type: str) -> str:
    text = "no value" if value is None else json.dumps(value, ensure_ascii=False)
    return f"{text} ({data_type})" if data_type else text


def _summary(checked: DriftCheckResult, mode: Mode, *, by_daemon: bool) -> str:
    status = checked.status
    if checked.lost:
        when = "now" if by_daemon or mode == "repair" else "by the next run or sync"
        return f"{checked.sink}: the service no longer has this sink. It is created again with all its entries {when}."
    if status is None:
        return f"{checked.sink}: nothing has been delivered to it yet."
    if status.failure:
        last = f" It was last read {moment(status.at)}." if status.at is not None else ""
        return f"{checked.sink}: not compared. {status.failure}{last}"
    unexplained = f"{status.unexplained} that no source explains" if status.unexplained else ""
    if not status.found:
        return f"{checked.sink}: {counted(status.entries, 'entry')}{f'; {unexplained}' if unexplained else ', as delivered'}."
    counts = f"{status.added} added, {status.changed} changed, {status.removed} removed by others"
    reaction = _reaction(checked.handled, mode, by_daemon=by_daemon)
    return f"{checked.sink}: {counted(status.entries, 'entry')}; {counts}{reaction}{f'; {unexplained}' if unexplained else ''}."


def _reaction(count: int, mode: Mode, *, by_daemon: bool) -> str:
    if not count:
        return ""
    if mode == "adopt":
        return f"; {count} adopted"
    return f"; the daemon sends {count} of them again" if by_daemon else f"; {count} sent again"
