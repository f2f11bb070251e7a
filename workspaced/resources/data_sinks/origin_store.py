"""The origins of values in the database. Each origin is stored once in each sink.

The entries that name an origin are not counted, because a count would slow down every write. A job examines the origins that
were not written for a day. It reads all entries, then all changes, and drops the origins that no row names. This order is safe:
if a value becomes a former value meanwhile, the job finds its origin in the changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from workspaced.resources.data_sinks.origins import StoredOrigins, ValueOrigin, split_origin
from workspaced.resources.data_sinks.values import StoredSink
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.resources.data_sinks", "origins.sql")
_HOUR_MS: Final = 3_600_000
UNCHECKED_MS: Final = 24 * _HOUR_MS
"""The minimum age of a dropped origin. It exceeds `_HOUR_MS` plus the time of a request: no request uses a dropped origin."""
_AT_ONCE: Final = 1_000
_WALK: Final = 10_000


def keep_origins(tx: Transaction, sink: StoredSink, origins: Sequence[ValueOrigin], *, now: int) -> list[int]:
    """Store the origins of a sink, except origins that were stored in the last hour. Return the number of each origin."""
    if not origins:
        return []
    digests = [origin.digest for origin in origins]
    values = {"sink": sink.number, "digests": json.dumps(digests), "since": now - _HOUR_MS}
    numbers: dict[str, int] = dict(tx.all(_SQL["find"], values))
    new = {digest: origin for digest, origin in zip(digests, origins, strict=True) if digest not in numbers}
    if new:
        rows = [{"digest": digest, **origin._asdict()} for digest, origin in new.items()]
        numbers |= tx.all(_SQL["keep"], {"sink": sink.number, "origins": json.dumps(rows), "now": now})
    return [numbers[digest] for digest in digests]


def find_origins(reader: ReadTransaction, origins: Iterable[int | None]) -> StoredOrigins:
    """Return the stored origins that entries or changes name, by their numbers."""
    numbers = {split_origin(origin)[0] for origin in origins if origin is not None}
    if not numbers:
        return {}
    rows = reader.all(_SQL["list"], {"numbers": json.dumps(sorted(numbers))})
    return {row[0]: ValueOrigin._make(row[1:]) for row in rows}


async def drop_unused(store: Store, *, now: int) -> int:
    """Drop the origins that no entry and no change names, in bounded steps. Return how many were dropped."""
    before = now - UNCHECKED_MS
    dropped = 0
    while unchecked := await store.read(partial(_unchecked, before=before)):
        unused = await _unused(store, set(unchecked), "walk_entries")
        unused = await _unused(store, unused, "walk_changes") if unused else unused
        confirmed = [number for number in unchecked if number not in unused]
        for part in _parts(confirmed):
            await store.write(partial(_run, "confirm", {"numbers": part, "now": now}), weight=_AT_ONCE)
        for part in _parts(sorted(unused)):
            dropped += await store.write(partial(_run, "drop", {"numbers": part, "before": before}), weight=_AT_ONCE)
    return dropped


def _run(name: str, values: Mapping[str, object], tx: Transaction, /) -> int:
    return tx.run(_SQL[name], values)


def _unchecked(reader: ReadTransaction, *, before: int) -> list[int]:
    return [row[0] for row in reader.all(_SQL["unchecked"], {"before": before, "most": 100 * _AT_ONCE})]


async def _unused(store: Store, numbers: set[int], statement: str) -> set[int]:
    """Return the origins that no row of the statement's table names."""
    after = 0
    while numbers:
        rows = await store.read(_walk_step(statement, after))
        numbers = numbers - {row[0] for row in rows}
        if sum(row[2] for row in rows) < _WALK:
            break
        after = max(row[1] for row in rows)
    return numbers


def _walk_step(statement: str, after: int) -> Callable[[ReadTransaction], list[Row]]:
    return lambda reader: reader.all(_SQL[statement], {"after": after, "walk": _WALK})


def _parts(numbers: list[int]) -> list[str]:
    return [json.dumps(numbers[start : start + _AT_ONCE]) for start in range(0, len(numbers), _AT_ONCE)]
