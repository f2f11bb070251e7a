"""The audit log. Each row is written in the transaction of the change that it records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import msgspec

from workspaced.storage.bounded_walk import walk
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.security", "audit_log.sql")
_NOTHING: Mapping[str, int] = {}
_PORTION = 1_000


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of an action: principal, key, client instance, request and address."""

    principal: str
    key_id: str = ""
    client_id: str = ""
    request_id: str = ""
    address: str = ""


SYSTEM = Actor(principal="system")
"""The service itself, and its command line."""


class StoredAuditRow(NamedTuple):
    """A row of the audit log.

    The fields are in the order of the columns in every SELECT. ``at`` is milliseconds since 1970. ``changed`` and ``counts``
    are JSON.
    """

    number: int
    at: int
    principal: str
    key_id: str
    client_id: str
    request_id: str
    address: str
    action: str
    resource_id: str
    resource_label: str
    workspace_id: str
    changed: str
    counts: str
    origin: str


class AuditPosition(NamedTuple):
    """The position of a row in the order of the log."""

    at: int
    number: int


_START: Final = AuditPosition(at=-1, number=0)
"""The start of the log, in both orders. No row has this time, so a page after this position excludes no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The filters, the order and the page of a request for audit rows.

    ``workspace_id`` None: rows of all workspaces. ``action`` empty: all actions; ``group.*``: all actions of the group.
    ``since`` (inclusive) and ``until`` (exclusive) are milliseconds since 1970.

    ``after``: the position after which the page begins; None: the start. ``walk``: how many rows may be examined.
    """

    workspace_id: str | None
    action: str = ""
    since: int = 0
    until: int = 2**62
    take: int
    walk: int
    skip: int = 0
    descending: bool = True
    after: AuditPosition | None = None


Names: TypeAlias = Sequence[str]


class AuditAction(msgspec.Struct, frozen=True, kw_only=True):
    """A change: ``action`` like ``data_sink.updated``, the names of the ``changed`` members, the ``counts`` of a bulk change.

    ``resource_label``: the key, label or name of the resource, because a deleted resource can't be read; empty: none.
    ``origin``: a sentence that says where the values come from; empty: not given.
    """

    action: str
    resource_id: str
    resource_label: str = ""
    workspace_id: str = ""
    changed: Names = ()
    counts: Mapping[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    origin: str = ""


def note(tx: Transaction, actor: Actor, action: AuditAction, *, now: int) -> None:
    """Append a row at the end of the transaction ``tx``. ``now`` is milliseconds since 1970."""
    tx.defer(
        _SQL["insert"],
        (
            now,
            actor.principal,
            actor.key_id,
            actor.client_id,
            actor.request_id,
            actor.address,
            action.action,
            action.resource_id,
            action.resource_label,
            action.workspace_id,
            json.dumps(action.changed) if action.changed else "[]",
            json.dumps(action.counts) if action.counts else "{}",
            action.origin,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of the log.

    ``total``: the number of matching rows; None: too many rows to count, or this is not the first page.
    ``next_after``: the position after which the next page begins; None: this is the last page.
    """

    rows: list[StoredAuditRow]
    total: int | None
    next_after: AuditPosition | None


def find(reader: ReadTransaction, query: AuditQuery) -> AuditPage:
    """Return a page; at most ``query.walk`` rows are examined.

    Raises:
        Invalid: ``query.skip`` needs more than ``query.walk`` rows.
    """
    values: dict[str, object] = {
        "from": query.since,
        "to": query.until,
        "action": query.action,
        "prefix": _prefix(query.action),
    }
    suffix = ""
    if query.workspace_id is not None:
        suffix = "_of_workspace"
        values["workspace_id"] = query.workspace_id
    name = f"{'newest' if query.descending else 'oldest'}_first{suffix}"

    def values_after(position: AuditPosition) -> dict[str, object]:
        found = {**values, "instant": position.at, "after": position.number}
        if position == _START:
            return found
        if query.descending:
            return {**found, "to": min(query.until, position.at + 1)}
        return {**found, "from": max(query.since, position.at)}

    def matching(position: AuditPosition, count: int, most: int) -> list[Row]:
        return reader.all(_SQL[name], {**values_after(position), "walk": count, "take": most})

    def end(position: AuditPosition, count: int) -> AuditPosition | None:
        row = reader.one(_SQL[f"{name}_end"], {**values_after(position), "walk": count - 1})
        return AuditPosition._make(row) if row else None

    found = walk(
        query.after or _START,
        take=query.take,
        skip=query.skip,
        most=query.walk,
        matching=matching,
        end=end,
        position=lambda row: AuditPosition(at=row[1], number=row[0]),
    )
    total = None
    if query.after is None:
        walked, matches = reader.one(_SQL[f"count{suffix}"], {**values, "walk": query.walk + 1}) or (0, 0)
        total = matches if walked <= query.walk else None
    return AuditPage(rows=[StoredAuditRow._make(row) for row in found.rows], total=total, next_after=found.next_after)


async def drop_older(store: Store, *, before: int) -> int:
    """Delete rows older than ``before`` (milliseconds since 1970), in batches. Return the number of deleted rows."""
    values = {"before": before, "most": _PORTION}
    dropped = 0
    while await store.read(lambda reader: reader.one(_SQL["any_before"], {"before": before})):
        dropped += await store.write(lambda tx: tx.run(_SQL["drop_before"], values), weight=_PORTION)
    return dropped


def _prefix(action: str) -> str | None:
    """Return the text with which an action must begin; None (NULL matches no row) if the whole action must be equal."""
    if not action:
        return ""
    return action[:-1] if action.endswith(".*") else None
