"""`ingestd trace`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import click
import msgspec

from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.commands.source_record import SourceRecord
from ingestd.commands.status import refuse_on_standby
from ingestd.commands.trace import TracedEntry, trace_entry
from ingestd.core.clock import moment
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.reporting import by_whom, format_location
from ingestd.mirror.drift import DriftFinding
from ingestd.mirror.reports import EntryOrigin, FormerValue
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo, safe_line, terminal_line

_INTERNAL = ("row_hash", "digest")
_SERVICE = ("what", "found", "found_type", "changed_by", "changed_at", "since")


@click.command()
@click.argument("key")
@click.option("--steps", is_flag=True, help="Read the record from its source and show how it makes the value.")
@json_option("Print a JSON list with an object for each sink.")
@with_configuration_without_secrets
def trace(configuration: Configuration, key: str, steps: bool, as_json: bool) -> None:
    """Show the source of the value of a KEY, and its former values.

    The source is a file or table, with the row and the time of reading. If the last drift check found another value in the
    service, this value is shown, with the author and the time of the change. Former values are the last ten different values
    and, before these, the first value of each hour.

    With --steps, the source is read until the record is found, and each step of the mapping is shown. If the record has changed
    or is gone, the output says so. An archived file is read from the archive. Nothing is written, and a daemon may run.

    Exit codes: 0 found, 1 no sink should contain the key.

    Example: ingestd trace 00417.mass --steps
    """
    refuse_on_standby(configuration.settings.state)
    entries = trace_entry(configuration, key, steps=steps)
    if as_json:
        echo(redact_text(json.dumps([_as_json(entry) for entry in entries], ensure_ascii=False, indent=2)))
    else:
        for entry in entries:
            echo("\n".join(map(safe_line, _lines(entry))))
    is_known = any(entry.origin is not None for entry in entries)
    if not is_known and not as_json:
        echo(f"No sink should contain '{terminal_line(key)}'. Keys are case-sensitive.", err=True)
    sys.exit(0 if is_known else 1)


def _as_json(entry: TracedEntry) -> dict[str, object]:
    """Return an entry as a JSON object. If the entry was removed, the members of its origin are null."""
    removed: dict[str, object] = dict.fromkeys(EntryOrigin.__struct_fields__)
    shown = removed | {"removed": True, "pending": False}
    if entry.origin is not None:
        shown = msgspec.to_builtins(entry.origin)
    shown |= {"workspace": entry.workspace, "sink": entry.sink, "key": entry.key}
    found = entry.service
    shown["service"] = found and {name: getattr(found, name) for name in _SERVICE}
    shown["former"] = [msgspec.to_builtins(one) for one in entry.former]
    if entry.source is not None:
        shown["steps"] = msgspec.to_builtins(entry.source)
    return {name: value for name, value in shown.items() if name not in _INTERNAL}


def _lines(entry: TracedEntry) -> Iterator[str]:
    origin = entry.origin
    if origin is None:
        is_added = entry.service is not None and entry.service.what == "added"
        yield f"{entry.key} {'was written by another program; no source names it' if is_added else 'was removed'}"
        yield f"  sink      {entry.sink} in {entry.workspace}"
    else:
        yield from _origin_lines(origin)
    if entry.service is not None:
        yield f"  service   {change_sentence(entry.service)}"
    if entry.source is not None:
        yield from _source_lines(entry.source)
    if entry.former:
        yield "  former values, the newest first:"
    for former in entry.former:
        yield from _former_lines(former)


def change_sentence(found: DriftFinding) -> str:
    """Return the value in the service, with the author and the time of the change, from the last drift check."""
    value = "no entry" if found.what == "removed" else f"= {found.found} ({found.found_type or 'no data type'})"
    return f"{value}, {found.what} {by_whom(found)}; known since {moment(found.since)}"


def _origin_lines(origin: EntryOrigin) -> Iterator[str]:
    value = "to be removed" if origin.removed else f"= {origin.value} ({origin.data_type})"
    state = "pending" if origin.pending else "rejected by the service" if origin.rejected else "delivered"
    yield f"{origin.key} {value}"
    yield f"  sink      {origin.sink} in {origin.workspace}, {state}"
    if origin.delivered_at is not None and not origin.rejected:
        request = f", {origin.operation} {origin.status or ''}".rstrip() if origin.operation else ""
        yield f"  delivered {moment(origin.delivered_at)}{request}"
    if not origin.pipeline:
        yield "  found in the service; no source has named it"
        return
    yield f"  pipeline  {origin.pipeline}"
    yield f"  source    {format_location(origin.partition, origin.position)}"
    if origin.last_read is not None:
        yield f"  last read {origin.last_read}, not sent: it is within the dead-band of the value above"
    if origin.read_at is not None:
        yield f"  read      {moment(origin.read_at)}, run {origin.run}"
    for name, text in origin.facts.items():
        yield f"  {name:<9} {text}"


def _source_lines(source: SourceRecord) -> Iterator[str]:
    for sentence in source.sentences:
        yield f"  note      {sentence}"
    shown = source.used or tuple(source.record)
    if source.record:
        yield f"  record    {', '.join(f'{name} = {_quoted(source.record.get(name))}' for name in shown)}"
    for name, text in source.facts.items():
        yield f"  {name:<9} {text}"
    for step in source.steps:
        yield f"  {step.name:<9} {step.text + ' ' if step.text else ''}→ {'no value' if step.result is None else step.result}"


def _former_lines(former: FormerValue) -> Iterator[str]:
    at, by = moment(former.ended_at), f" by run {former.ended_by}" if former.ended_by else ""
    ended = {
        "replaced": f"replaced {at}{by}",
        "removed": f"removed {at}{by}",
        "approved": f"replaced {at} by the approved run {former.ended_by}",
        "adopted": f"replaced {at} by the service's content (drift --adopt)",
        "overwritten": f"overwritten {at}",
        "rolled_back": f"rolled back {at}",
    }[former.ending]
    yield f"  · {former.value} ({former.data_type}), {ended}"
    if former.delivery == "found":
        yield "    found in the service"
        return
    read = f", read {moment(former.read_at)}, run {former.run}" if former.read_at is not None else ""
    yield f"    {former.pipeline}: {format_location(former.partition, former.position)}{read}"
    delivered = f" {moment(former.delivered_at)}" if former.delivered_at is not None else ""
    state = {
        "delivered": f"delivered{delivered}",
        "rejected": "rejected by the service",
        "sent": "in a request without a response when it ended",
        "pending": "never sent",
    }[former.delivery]
    yield f"    {state}"


def _quoted(text: str | None) -> str:
    return "null" if text is None else json.dumps(text, ensure_ascii=False)
