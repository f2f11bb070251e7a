"""Sessions in the database: digests only, so that a reader of the database can't use a session."""

from __future__ import annotations

from dataclasses import dataclass

from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.ui", "sessions.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """``secret`` is the digest of the API key that began the session; ``expires_at`` is milliseconds since 1970."""

    key_id: str
    secret: bytes
    expires_at: int


def begin(tx: Transaction, token: bytes, session: StoredSession, *, now: int) -> None:
    """Store a session under the digest of its token."""
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
    """Return the session under this digest, unless it has expired."""
    row = reader.one(_SQL["find"], {"token": token, "now": now})
    return StoredSession(key_id=row[0], secret=bytes(row[1]), expires_at=row[2]) if row else None


def end(tx: Transaction, token: bytes) -> bool:
    """Delete a session; return whether it existed."""
    return tx.run(_SQL["end"], {"token": token}) > 0


def drop_ended(tx: Transaction, *, now: int) -> int:
    """Delete expired sessions; return how many there were."""
    return tx.run(_SQL["drop_ended"], {"now": now})
