"""Stored responses of requests with an Idempotency-Key (contract G18).

A response is read and written in the transaction of the request's work.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import lru_cache

import msgspec

from workspaced.storage.port import Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage", "idempotency.sql")
_DROPPED_FOR_EACH = 2


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The first response to a request, and the digest of the request's content."""

    fingerprint: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    created_at: int
    """Milliseconds since 1970."""


def find(tx: Transaction, slot: bytes, *, since: int) -> StoredResponse | None:
    """Return the response stored under a slot after ``since`` (milliseconds since 1970).

    Other transactions that call this function for the same slot wait until this transaction ends.
    """
    tx.later(_SQL["queue_for_slot"], {"slot": slot})
    row = tx.one(_SQL["find"], {"slot": slot, "since": since})
    return None if row is None else _stored(*row)


def find_each(tx: Transaction, slots: Collection[bytes]) -> Mapping[bytes, StoredResponse]:
    """Return the responses stored under the slots (digests of 32 bytes each), including expired responses.

    Other transactions that call this function for one of the slots wait until this transaction ends.
    """
    values = {"slots": b"".join(sorted(slots)), "count": len(slots)}
    tx.later(_SQL["queue_for_slots"], values)
    rows = tx.all(_SQL["find_each"], values)
    return {slot: _stored(*row) for slot, *row in rows}


def save(tx: Transaction, slot: bytes, response: StoredResponse, *, since: int) -> None:
    """Store a response, and delete a few responses that were stored before ``since``."""
    tx.later(_SQL["drop_expired"], {"since": since, "most": _DROPPED_FOR_EACH})
    tx.later(
        _SQL["save"],
        {
            "slot": slot,
            "fingerprint": response.fingerprint,
            "status": response.status,
            "headers": _headers_text(response.headers),
            "body": response.body,
            "now": response.created_at,
        },
    )


def save_each(tx: Transaction, responses: Mapping[bytes, StoredResponse], *, since: int) -> None:
    """Store responses, and delete a few responses that were stored before ``since``.

    The slots must not have a stored response yet, not even an expired one.
    """
    tx.later(_SQL["drop_expired"], {"since": since, "most": _DROPPED_FOR_EACH * len(responses)})
    tx.load(
        _SQL["save_each"],
        [
            (slot, one.fingerprint, one.status, _headers_text(one.headers), one.body, one.created_at)
            for slot, one in responses.items()
        ],
    )


@lru_cache(maxsize=256)
def _headers_text(headers: tuple[tuple[str, str], ...]) -> str:
    """Return the headers as JSON, cached: most responses to one operation have the same headers."""
    return json.dumps(headers)


def _stored(fingerprint: bytes, status: int, headers: str, body: bytes, created_at: int) -> StoredResponse:
    return StoredResponse(
        fingerprint=fingerprint,
        status=status,
        headers=tuple((str(name), str(value)) for name, value in json.loads(headers)),
        body=body,
        created_at=created_at,
    )
