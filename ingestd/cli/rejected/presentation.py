"""How a rejection is written for a person and for a program."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ingestd.cli.location import place
from ingestd.core.clock import moment
from ingestd.mirror.rejections import Refusal, Rejection

_SUBJECTS = {
    "record": "a record", "entry": "an entry that the service refused", "conflict": "a key that another pipeline writes",
    "partition": "a file or table that can't be read",
}  # fmt: skip


def line(rejection: Rejection) -> str:
    """``17  budget · budget.csv, row 3 · key 00417.mass: the reason``."""
    where = f"{rejection.pipeline} · {place(rejection.partition, rejection.position)}{column(rejection)}"
    key = f" · key {rejection.key}" if rejection.key else ""
    waits = " (to be mapped again)" if rejection.retried else ""
    return f"{rejection.id}  {where}{key}: {rejection.reason}{waits}"


def column(rejection: Rejection) -> str:
    """``, column mass_kg`` of a refused entry; the reason of a refused record names its column by itself."""
    return f", column {rejection.field}" if rejection.subject == "entry" and rejection.field else ""


def whole(rejection: Rejection, refusals: Sequence[Refusal]) -> Iterator[str]:
    """All that is known, a line each. Values stand in quotes, so that blanks show."""
    yield f"{rejection.id}  {_SUBJECTS[rejection.subject]}, of the pipeline {rejection.pipeline}"
    yield f"  source   {place(rejection.partition, rejection.position)}"
    yield f"  sink     {rejection.sink} in {rejection.workspace}"
    yield f"  reason   {rejection.reason}"
    if rejection.field:
        yield f"  field    {rejection.field}"
    again = f", judged {rejection.times} times, last {moment(rejection.last_at)}" if rejection.times > 1 else ""
    yield f"  since    {moment(rejection.at)}{again}"
    if rejection.retried:
        yield "  waits    to be mapped again when its file or table is read next"
    if rejection.key:
        said = "to be removed" if rejection.removal else f"= {_quoted(rejection.value)} ({rejection.data_type})"
        yield f"  entry    {rejection.key} {said}"
    for number, (name, value) in enumerate(rejection.record.items()):
        yield f"  {'' if number else 'record':<8} {name} = {_quoted(value)}"
    for number, refusal in enumerate(refusals):
        request = f", request {refusal.request_id}" if refusal.request_id else ""
        operation = f"{refusal.operation}{request}: " if refusal.operation else ""
        yield f"  {'' if number else 'attempts':<8} {moment(refusal.at)} {operation}{refusal.words}"


def as_json(rejection: Rejection, refusals: Sequence[Refusal] | None = None) -> str:
    """One object; with ``attempts`` where they are told."""
    members: dict[str, Any] = dataclasses.asdict(rejection)
    if refusals is not None:
        members["attempts"] = [dataclasses.asdict(refusal) for refusal in refusals]
    return json.dumps(members, ensure_ascii=False)


def _quoted(value: str | None) -> str:
    return "(none)" if value is None else json.dumps(value, ensure_ascii=False)
