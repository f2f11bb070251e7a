"""The sessions of signed-in users. A session begins with an API key, and ends at the latest when the key ends.

The database stores only digests of tokens, so a reader of the database can't use a session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from workspaced.core.problems import UnauthenticatedProblem
from workspaced.security import audit_log as audit
from workspaced.security.audit_log import Actor, AuditAction
from workspaced.security.authentication import Authentication
from workspaced.security.key_format import digest
from workspaced.security.permissions import Principal
from workspaced.security.rate_limits import Limit
from workspaced.settings.model import Limits
from workspaced.storage.port import Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.ui", "sessions.sql")
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The session of a signed-in user. ``token`` is in the user's cookie."""

    principal: Principal
    token: str = field(repr=False)

    @property
    def form_token(self) -> str:
        """Return the token that each form must send, so that other sites can't send forms. It does not reveal ``token``."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()


class Sessions:
    """The sessions in the database, which all processes with this database share."""

    def __init__(
        self, store: Store, authentication: Authentication, *, rate: Limit, limits: Limits, now: Callable[[], int]
    ) -> None:
        """``rate`` limits requests; a sign-in counts as a request of the key. ``now`` returns milliseconds since 1970."""
        self.seconds = limits.page_session_hours * 3_600
        self._store = store
        self._authentication = authentication
        self._rate = rate
        self._now = now

    async def begin(self, key: str, *, address: str, request_id: str) -> Session:
        """Begin a session with an API key.

        Raises:
            UnauthenticatedProblem: the key is not valid.
            TooManyRequests: too many keys from this address were not valid, or this key sends too many requests.
        """
        principal = await self._authentication.principal(key, address=address, request_id=request_id)
        if principal is None:
            raise UnauthenticatedProblem
        (await self._rate.admit(principal.key_id)).require()
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._now()
        row = {
            "token": _digest(token),
            "key_id": principal.key_id,
            "secret": digest(key),
            "now": now,
            "expires_at": now + self.seconds * 1_000,
        }
        actor = Actor(principal=principal.name, key_id=principal.key_id, request_id=request_id, address=address)

        def act(tx: Transaction) -> None:
            tx.run(_SQL["drop_ended"], {"now": now})
            tx.run(_SQL["begin"], row)
            audit.note(tx, actor, AuditAction(action="page_session.created", resource_id=principal.key_id), now=now)

        await self._store.write(act)
        return Session(principal=principal, token=token)

    async def find(self, token: str) -> Session | None:
        """Return the session of this token, with the present permissions of its key; None if the session or the key has ended."""
        values = {"token": _digest(token), "now": self._now()}
        stored = await self._store.read_brief(lambda reader: reader.one(_SQL["find"], values))
        if stored is None:
            return None
        key_id, secret = stored
        principal = await self._authentication.verify_again(key_id, bytes(secret))
        return Session(principal=principal, token=token) if principal else None

    async def end(self, session: Session, *, address: str, request_id: str) -> None:
        """End a session."""
        principal, now = session.principal, self._now()
        actor = Actor(principal=principal.name, key_id=principal.key_id, request_id=request_id, address=address)

        def act(tx: Transaction) -> None:
            if tx.run(_SQL["end"], {"token": _digest(session.token)}):
                audit.note(tx, actor, AuditAction(action="page_session.deleted", resource_id=principal.key_id), now=now)

        await self._store.write(act)

    async def drop_ended(self) -> int:
        """Delete expired sessions. Return the number of deleted sessions."""
        now = self._now()
        return await self._store.write(lambda tx: tx.run(_SQL["drop_ended"], {"now": now}))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
