"""The sizes of queues, read from the database at each scrape, once for all processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from workspaced.core.problems import Problem
from workspaced.storage.port import ReadTransaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.telemetry", "levels.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The sizes of the queues. ``oldest_ms``: when the oldest delivery or event was queued, in milliseconds since 1970.

    ``reached`` False: the database did not respond, and the other fields are empty.
    """

    reached: bool = True
    deliveries: dict[str, int] = field(default_factory=dict)
    oldest_ms: int | None = None
    webhooks: dict[str, int] = field(default_factory=dict)
    conversions: dict[str, int] = field(default_factory=dict)
    database_bytes: int | None = None


async def read_levels(store: Store) -> Levels:
    """Return the present sizes of the queues."""
    try:
        return await store.read(_levels)
    except Problem:
        return Levels(reached=False)


def _levels(reader: ReadTransaction) -> Levels:
    waiting = reader.all(_SQL["waiting_deliveries"])
    fan_out, since = reader.one(_SQL["waiting_events"]) or (0, None)
    webhooks = {int(enabled): int(count) for enabled, count in reader.all(_SQL["webhooks"])}
    conversions = {str(state): int(count) for state, count in reader.all(_SQL["open_conversions"])}
    size = reader.one(_SQL["database_bytes"])
    deliveries = {"pending": 0, "failed": 0} | {str(status): int(count) for status, count, _ in waiting}
    deliveries["pending"] += int(fan_out)
    instants = [*(oldest for _, _, oldest in waiting), since]
    return Levels(
        deliveries=deliveries,
        oldest_ms=min((int(instant) for instant in instants if instant is not None), default=None),
        webhooks={"enabled": webhooks.get(1, 0), "disabled": webhooks.get(0, 0)},
        conversions={"pending": 0, "in_progress": 0} | conversions,
        database_bytes=int(size[0]) if size else None,
    )
