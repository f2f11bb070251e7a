"""Authentication of a caller by the API key in the header x-api-key."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from ingestd.process.http_server.registry import source_of
from workspaced.core.problems import Problem, TooManyRequests, UnauthenticatedProblem
from workspaced.security import audit_log as audit
from workspaced.security import key_store as keys
from workspaced.security.audit_log import Actor, AuditAction
from workspaced.security.key_format import digest, key_id_of
from workspaced.security.permissions import Principal, principal_of
from workspaced.security.rate_limits import Limit, Policy, RateLimit
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

_REMEMBERED = 1_000
_TOUCH_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    principal: Principal
    at: float


class Authentication:
    """Verifies keys. A valid key is cached for ``cache_seconds``, so a revoked key is accepted for at most this time.

    After too many failures from an address, only keys in the cache are accepted from this address. So guessed keys cause no
    query, and other callers from the same address can continue. An IPv6 /64 network counts as one address, because one client
    can use all its addresses.
    """

    def __init__(
        self,
        store: Store,
        *,
        failures: Limit,
        cache_seconds: float,
        now: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        count_failure: Callable[[str], None],
    ) -> None:
        """``now`` returns milliseconds since 1970, for the expiry of keys; ``clock`` returns monotonic seconds.

        ``count_failure`` is called with the reason of each failure.
        """
        self.failures = failures
        self._store = store
        self._count_failure = count_failure
        self._cache_seconds = cache_seconds
        self._now = now
        self._clock = clock
        self._known: dict[bytes, _Verified] = {}
        self._asked: dict[bytes, tuple[float, asyncio.Task[Principal]]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._sampled = RateLimit(Policy("sampled", 1, 1), clock=clock)

    async def principal(self, key: str | None, *, address: str, request_id: str) -> Principal | None:
        """Return the caller; None for a caller without a key.

        Raises:
            UnauthenticatedProblem: the key is unknown, mistyped, expired or revoked; the log has the reason.
            TooManyRequests: too many invalid keys came from this address.
        """
        if key is None:
            return None
        now = self._now()
        sha256 = digest(key)
        known = self._known.get(sha256)
        if known and self._is_fresh(known.at):
            return known.principal
        if known is None and not (left := self.failures.look(source_of(address))).allowed:
            raise TooManyRequests(
                "too_many_failed_authentications",
                "Too many requests from this address had no valid API key.",
                retry_seconds=left.retry_seconds,
            )
        try:
            key_id = key_id_of(key)
            if key_id is None:
                raise _AuthenticationRefused("malformed", "")  # noqa: TRY301  reported like every other refusal
            return await self._verify(key_id, sha256, now)
        except _AuthenticationRefused as refused:
            self._known.pop(sha256, None)
            await self._note_failure(refused, address=address, request_id=request_id, now=now)
            raise UnauthenticatedProblem from None

    async def verify_again(self, key_id: str, sha256: bytes) -> Principal | None:
        """Return the present principal of a key that was valid before; None if the key is no longer valid.

        Sessions and links are checked with this method, so they end when their key ends. ``sha256`` is the digest of the key.
        """
        now = self._now()
        known = self._known.get(sha256)
        if known and self._is_fresh(known.at):
            return known.principal
        try:
            return await self._verify(key_id, sha256, now)
        except _AuthenticationRefused as refused:
            self._known.pop(sha256, None)
            structlog.get_logger().info("derived_credential_refused", reason=refused.reason, key_id=key_id)
            return None

    def _is_fresh(self, at: float) -> bool:
        """Return whether the result of a look-up that began at ``at`` (monotonic seconds) may still be used."""
        return self._clock() - at < self._cache_seconds

    async def close(self) -> None:
        """Wait until the background writes end."""
        if self._writing:
            await asyncio.wait(self._writing)

    async def _verify(self, key_id: str, sha256: bytes, now: int) -> Principal:
        """Return the principal of a key. Concurrent callers share a look-up, if it began recently (`_is_fresh`).

        Raises:
            _AuthenticationRefused: the key is not valid.
        """
        asked_at, asked = self._asked.get(sha256, (0.0, None))
        if asked is not None and self._is_fresh(asked_at):
            return await asyncio.shield(asked)
        asked_at = self._clock()  # before the look-up, which may miss a revocation that is committed after this time
        asked = asyncio.create_task(self._look_up(key_id, sha256, now, asked_at))
        self._asked[sha256] = asked_at, asked
        try:
            return await asyncio.shield(asked)
        finally:
            if self._asked.get(sha256) == (asked_at, asked):
                del self._asked[sha256]

    async def _look_up(self, key_id: str, sha256: bytes, now: int, asked_at: float) -> Principal:
        found = await self._store.read_brief(lambda reader: keys.credentials(reader, key_id))
        if found is None:
            raise _AuthenticationRefused("unknown", key_id)
        ends = [end for stored, end in found.digests if hmac.compare_digest(stored, sha256)]
        if not any(end is None or now < end for end in ends):
            raise _AuthenticationRefused("wrong_secret", key_id)
        if found.revoked_at is not None:
            raise _AuthenticationRefused("revoked", key_id)
        if found.expires_at is not None and now >= found.expires_at:
            raise _AuthenticationRefused("expired", key_id)
        if found.last_used_at is None or now - found.last_used_at >= _TOUCH_MS:
            self._write_in_background("key_use_not_noted", lambda tx: keys.touch_key(tx, key_id=key_id, now=now))
        principal = principal_of(
            name=found.principal,
            key_id=key_id,
            key_scopes=found.scopes,
            grants=found.grants,
            secret=sha256,
            expires_at=min((end for end in (*ends, found.expires_at) if end is not None), default=None),
        )
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[sha256] = _Verified(principal=principal, at=asked_at)
        return principal

    async def _note_failure(self, refused: _AuthenticationRefused, *, address: str, request_id: str, now: int) -> None:
        """Log each failure. Any caller can cause failures, so the audit log gets at most one row per minute and address."""
        structlog.get_logger().info(
            "authentication_refused", reason=refused.reason, key_id=refused.key_id or None, address=address
        )
        self._count_failure(refused.reason)
        source = source_of(address)
        await self.failures.admit(source)
        if self._sampled.take(source).allowed:
            action = AuditAction(action="authentication.refused", resource_id=refused.key_id)
            actor = Actor(principal="", key_id=refused.key_id, request_id=request_id, address=address)
            self._write_in_background("failure_not_noted", lambda tx: audit.note(tx, actor, action, now=now))

    def _write_in_background(self, failed: str, work: Callable[[Transaction], None]) -> None:
        """Write without delaying the request; a failure is logged as the event ``failed``."""
        task = asyncio.create_task(self._write(failed, work))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, failed: str, work: Callable[[Transaction], None]) -> None:
        try:
            await self._store.write(work)
        except Problem as problem:
            structlog.get_logger().warning(failed, reason=problem.detail)


class _AuthenticationRefused(Exception):
    """The reason why a key is not valid, for the log only."""

    def __init__(self, reason: str, key_id: str) -> None:
        self.reason = reason
        self.key_id = key_id
        super().__init__(reason)
