"""Rows of the audit log: written in the transaction of the change they tell of, read by who may."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ingestd.process.statements import load_statements
from workspaced.storage.port import Reader, Store, Transaction

_SQL = load_statements("workspaced.audit", "queries.sql")
_NOTHING: Mapping[str, int] = {}
_PORTION = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Doer:
    """Who did it, with which key and instance, in which request, from where."""

    principal: str
    key_id: str = ""
    client_id: str = ""
    request_id: str = ""
    address: str = ""


SYSTEM = Doer(principal="system")
"""The service itself, and those who command it on its own machine."""


class AuditRow(NamedTuple):
    """A row, in the order of every SELECT. ``at`` is milliseconds since 1970; ``changed`` and ``counts`` are JSON."""

    number: int
    at: int
    principal: str
    key_id: str
    client_id: str
    request_id: str
    address: str
    action: str
    resource_id: str
    workspace_id: str
    changed: str
    counts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to show. ``action`` empty: all; ending with ``.*``: all below. Instants: from (inclusive) to (exclusive)."""

    workspace_id: str | None
    action: str = ""
    since: int = 0
    until: int = 2**62
    take: int
    skip: int = 0
    descending: bool = True


Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What was done: ``action`` like ``data_sink.updated``, ``changed`` by the names of members, ``counts`` for many."""

    action: str
    resource_id: str
    workspace_id: str = ""
    changed: Names = ()
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)


def note(tx: Transaction, doer: Doer, deed: Deed, *, now: int) -> None:
    """Append a row, with the rows of all who share the transaction."""
    tx.defer(
        _SQL["insert"],
        (
            now,
            doer.principal,
            doer.key_id,
            doer.client_id,
            doer.request_id,
            doer.address,
            deed.action,
            deed.resource_id,
            deed.workspace_id,
            json.dumps(deed.changed) if deed.changed else "[]",
            json.dumps(deed.counts) if deed.counts else "{}",
        ),
    )


def find(reader: Reader, wanted: Wanted) -> tuple[int, list[AuditRow]]:
    """How many rows there are in all, and those of the page."""
    values: dict[str, object] = {
        "from": wanted.since,
        "to": wanted.until,
        "action": wanted.action,
        "prefix": _prefix(wanted.action),
    }
    suffix = ""
    if wanted.workspace_id is not None:
        suffix = "_of_workspace"
        values["workspace_id"] = wanted.workspace_id
    total = reader.one(_SQL[f"count{suffix}"], values)
    statement = _SQL[f"{'newest' if wanted.descending else 'oldest'}_first{suffix}"]
    rows = reader.all(statement, {**values, "take": wanted.take, "skip": wanted.skip})
    return int(total[0]) if total else 0, [AuditRow._make(row) for row in rows]


async def drop_older(store: Store, *, before: int) -> int:
    """Drop what is older than an instant, in portions; how many rows they were."""
    values = {"before": before, "most": _PORTION}
    dropped = 0
    while await store.read(lambda reader: reader.one(_SQL["any_before"], {"before": before})):
        dropped += await store.write(lambda tx: tx.run(_SQL["drop_before"], values), weight=_PORTION)
    return dropped


def _prefix(action: str) -> str | None:
    """What an action must begin with; None, which nothing equals, where only the whole name counts."""
    if not action:
        return ""
    return action[:-1] if action.endswith(".*") else None
