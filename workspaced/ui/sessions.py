"""Signing in and out: an API key is shown once and stands for the session, which ends with the key, if not before."""

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
from workspaced.storage.port import Store, Transaction
from workspaced.ui import session_store
from workspaced.ui.session_store import StoredSession

_HOUR_MS = 3_600_000
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who is signed in. ``token`` is what his cookie holds."""

    principal: Principal
    token: str = field(repr=False)

    @property
    def form_token(self) -> str:
        """What a form must send back, so that only our own pages can have sent it; nobody can infer the cookie from it."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()


class Sessions:
    """Of all processes on the same database."""

    def __init__(self, store: Store, authentication: Authentication, *, hours: int, now: Callable[[], int]) -> None:
        """``hours`` is how long a session lasts at the most; ``now`` tells milliseconds since 1970."""
        self.seconds = hours * 3_600
        self._store = store
        self._authentication = authentication
        self._now = now

    async def begin(self, key: str, *, address: str, request_id: str) -> Session:
        """A session for who has this key.

        Raises:
            UnauthenticatedProblem: the key is not good.
            TooManyRequests: too many keys from this address were not.
        """
        principal = await self._authentication.principal(key, address=address, request_id=request_id)
        if principal is None:
            raise UnauthenticatedProblem
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._now()
        stored = StoredSession(key_id=principal.key_id, secret=digest(key), expires_at=now + self.seconds * 1_000)
        actor = Actor(principal=principal.name, key_id=principal.key_id, request_id=request_id, address=address)

        def act(tx: Transaction) -> None:
            session_store.drop_ended(tx, now=now)
            session_store.begin(tx, _digest(token), stored, now=now)
            audit.note(tx, actor, AuditAction(action="page_session.created", resource_id=principal.key_id), now=now)

        await self._store.write(act)
        return Session(principal=principal, token=token)

    async def find(self, token: str) -> Session | None:
        """The session of this token, with what its key may do now; None where it, or its key, has ended."""
        sha256, now = _digest(token), self._now()
        stored = await self._store.read_brief(lambda reader: session_store.find(reader, sha256, now=now))
        if stored is None:
            return None
        principal = await self._authentication.verify_again(stored.key_id, stored.secret)
        return Session(principal=principal, token=token) if principal else None

    async def end(self, session: Session, *, address: str, request_id: str) -> None:
        """End it; its token is worth nothing from now on."""
        principal, now = session.principal, self._now()
        actor = Actor(principal=principal.name, key_id=principal.key_id, request_id=request_id, address=address)

        def act(tx: Transaction) -> None:
            if session_store.end(tx, _digest(session.token)):
                audit.note(tx, actor, AuditAction(action="page_session.deleted", resource_id=principal.key_id), now=now)

        await self._store.write(act)

    async def drop_ended(self) -> int:
        """Forget those whose time is over; how many they were."""
        now = self._now()
        return await self._store.write(lambda tx: session_store.drop_ended(tx, now=now))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
