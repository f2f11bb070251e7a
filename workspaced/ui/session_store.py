"""Sessions in the database: digests only, so whoever reads it can't take one over."""

from __future__ import annotations

from dataclasses import dataclass

from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.ui", "sessions.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """``secret`` is the digest of the API key that began it; the end is milliseconds since 1970."""

    key_id: str
    secret: bytes
    expires_at: int


def begin(tx: Transaction, token: bytes, session: StoredSession, *, now: int) -> None:
    """Keep a session under the digest of its token."""
    tx.run(
        _SQL["begin"],
        {
            "token": token,
            "key_id": session.key_id,
            "secret": session.secret,
            "now": now,
            "expires_at": session.expires_at,
        },
    )


def find(reader: ReadTransaction, token: bytes, *, now: int) -> StoredSession | None:
    """The session under this digest, unless its time is over."""
    row = reader.one(_SQL["find"], {"token": token, "now": now})
    return StoredSession(key_id=row[0], secret=bytes(row[1]), expires_at=row[2]) if row else None


def end(tx: Transaction, token: bytes) -> bool:
    """Forget a session; whether there was one."""
    return tx.run(_SQL["end"], {"token": token}) > 0


def drop_ended(tx: Transaction, *, now: int) -> int:
    """Forget those whose time is over; how many they were."""
    return tx.run(_SQL["drop_ended"], {"now": now})
