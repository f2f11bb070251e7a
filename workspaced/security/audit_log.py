"""Rows of the audit log: written in the transaction of the change they tell of, read by who may."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from workspaced.storage.bounded_walk import walk
from workspaced.storage.port import ReadTransaction, Row, Store, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.security", "audit_log.sql")
_NOTHING: Mapping[str, int] = {}
_PORTION = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who did it, with which key and instance, in which request, from where."""

    principal: str
    key_id: str = ""
    client_id: str = ""
    request_id: str = ""
    address: str = ""


SYSTEM = Actor(principal="system")
"""The service itself, and those who command it on its own machine."""


class StoredAuditRow(NamedTuple):
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


class Place(NamedTuple):
    """The place of a row in the order of the log."""

    at: int
    number: int


_START: Final = Place(at=-1, number=0)
"""Before every row, in either direction: no row is of this instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to show. ``action`` empty: all; ending with ``.*``: all below. Instants: from (inclusive) to (exclusive).

    ``behind``: where the page begins; None: at the start. ``walk``: how many rows it may pass over.
    """

    workspace_id: str | None
    action: str = ""
    since: int = 0
    until: int = 2**62
    take: int
    walk: int
    skip: int = 0
    descending: bool = True
    behind: Place | None = None


Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAction:
    """What was done: ``action`` like ``data_sink.updated``, ``changed`` by the names of members, ``counts`` for many."""

    action: str
    resource_id: str
    workspace_id: str = ""
    changed: Names = ()
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)


def note(tx: Transaction, actor: Actor, action: AuditAction, *, now: int) -> None:
    """Append a row, with the rows of all who share the transaction."""
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
            action.workspace_id,
            json.dumps(action.changed) if action.changed else "[]",
            json.dumps(action.counts) if action.counts else "{}",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Rows of the log.

    ``total`` None: they were not counted, since there are too many, or this is not the first page. ``behind``: the place
    behind which the next page begins; None: this is the last.
    """

    rows: list[StoredAuditRow]
    total: int | None
    behind: Place | None


def find(reader: ReadTransaction, wanted: Wanted) -> AuditPage:
    """The page, found by passing over ``wanted.walk`` rows at the most.

    Raises:
        Invalid: ``wanted.skip`` passes over more.
    """
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
    name = f"{'newest' if wanted.descending else 'oldest'}_first{suffix}"

    def behind(place: Place) -> dict[str, object]:
        if place == _START:
            return {**values, "instant": place.at, "after": place.number}
        bound = {"to": min(wanted.until, place.at + 1)} if wanted.descending else {"from": max(wanted.since, place.at)}
        return {**values, **bound, "instant": place.at, "after": place.number}

    def matching(place: Place, count: int, most: int) -> list[Row]:
        return reader.all(_SQL[name], {**behind(place), "walk": count, "take": most})

    def end(place: Place, count: int) -> Place | None:
        row = reader.one(_SQL[f"{name}_end"], {**behind(place), "walk": count - 1})
        return Place._make(row) if row else None

    found = walk(
        wanted.behind or _START,
        take=wanted.take,
        skip=wanted.skip,
        most=wanted.walk,
        matching=matching,
        end=end,
        position=lambda row: Place(at=row[1], number=row[0]),
    )
    total = None
    if wanted.behind is None:
        walked, matches = reader.one(_SQL[f"count{suffix}"], {**values, "walk": wanted.walk + 1}) or (0, 0)
        total = matches if walked <= wanted.walk else None
    return AuditPage(rows=[StoredAuditRow._make(row) for row in found.rows], total=total, behind=found.behind)


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
