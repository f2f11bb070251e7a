"""The text and JSON forms of a rejection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ingestd.core.clock import moment
from ingestd.daemon.reporting import format_location, format_rejection
from ingestd.mirror.rejections import Refusal, Rejection
from ingestd.process.terminal_text import terminal_line

_SUBJECTS = {
    "record": "a record", "entry": "an entry that the service refused", "conflict": "a key that another pipeline writes",
    "partition": "a file or table that can't be read",
}  # fmt: skip


def format_line(rejection: Rejection) -> str:
    """Return a line such as ``17  budget · budget.csv, row 3 · key 00417.mass: the reason``."""
    retried = " (to be mapped again)" if rejection.retried else ""
    return terminal_line(f"{rejection.id}  {format_rejection(rejection)}{retried}")


def format_details(rejection: Rejection, refusals: Sequence[Refusal]) -> Iterator[str]:
    """Yield all facts of a rejection, one per line. Values are quoted to make spaces visible."""
    yield f"{rejection.id}  {_SUBJECTS[rejection.subject]}, of the pipeline {rejection.pipeline}"
    yield f"  source   {format_location(rejection.partition, rejection.position)}"
    yield f"  sink     {rejection.sink} in {rejection.workspace}"
    yield f"  reason   {rejection.reason}"
    if rejection.field:
        yield f"  field    {rejection.field}"
    repeated = f", rejected {rejection.times} times, last {moment(rejection.last_at)}" if rejection.times > 1 else ""
    yield f"  since    {moment(rejection.at)}{repeated}"
    if rejection.retried:
        yield "  retry    mapped again when its file or table is read next"
    if rejection.key:
        change = "to be removed" if rejection.removal else f"= {_quoted(rejection.value)} ({rejection.data_type})"
        yield f"  entry    {rejection.key} {change}"
    for number, (name, value) in enumerate(rejection.record.items()):
        yield f"  {'' if number else 'record':<8} {name} = {_quoted(value)}"
    for number, refusal in enumerate(refusals):
        request = f", request {refusal.request_id}" if refusal.request_id else ""
        operation = f"{refusal.operation}{request}: " if refusal.operation else ""
        yield f"  {'' if number else 'attempts':<8} {moment(refusal.at)} {operation}{refusal.words}"


def to_json(rejection: Rejection, refusals: Sequence[Refusal] | None = None) -> str:
    """Return a rejection as a JSON object, with ``attempts`` if ``refusals`` are given."""
    members: dict[str, Any] = msgspec.to_builtins(rejection)
    if refusals is not None:
        members["attempts"] = [msgspec.to_builtins(refusal) for refusal in refusals]
    return json.dumps(members, ensure_ascii=False)


def _quoted(value: str | None) -> str:
    return "(none)" if value is None else json.dumps(value, ensure_ascii=False)
