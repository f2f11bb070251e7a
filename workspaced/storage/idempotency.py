"""Kept answers (contract G18), read and written inside the business transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ingestd.process.statements import load_statements
from workspaced.storage.port import Transaction

_SQL = load_statements("workspaced.storage", "idempotency.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """The first answer to a request, and the digest of that request's content."""

    fingerprint: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def find(tx: Transaction, slot: bytes, *, since: int) -> StoredResponse | None:
    """The answer kept under a slot, unless it is as old as ``since`` (milliseconds since 1970).

    Until the transaction ends no other one gets past here with the same slot.
    """
    tx.one(_SQL["queue_for_slot"], {"slot": slot})
    row = tx.one(_SQL["find"], {"slot": slot, "since": since})
    if row is None:
        return None
    headers = tuple((str(name), str(value)) for name, value in json.loads(row[2]))
    return StoredResponse(fingerprint=row[0], status=row[1], headers=headers, body=row[3])


def save(tx: Transaction, slot: bytes, answer: StoredResponse, *, now: int, since: int) -> None:
    """Keep an answer; drop a few that have had their time."""
    tx.run(_SQL["drop_expired"], {"since": since})
    tx.run(
        _SQL["save"],
        {
            "slot": slot,
            "fingerprint": answer.fingerprint,
            "status": answer.status,
            "headers": json.dumps(answer.headers),
            "body": answer.body,
            "now": now,
        },
    )
