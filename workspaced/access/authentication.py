"""From the header x-api-key to a principal."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from workspaced.access import store as keys
from workspaced.access.key_form import digest, key_id_of
from workspaced.access.permissions import Principal, principal_of
from workspaced.problems import Problem, Unauthenticated
from workspaced.storage.port import Store

_REMEMBERED = 1_000
_TOUCH_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    principal: Principal
    at: int


class Authentication:
    """Verifies keys; a good one is remembered for ``cache_seconds``, so a revoked one ends that much later at most."""

    def __init__(self, store: Store, *, cache_seconds: float, now: Callable[[], int]) -> None:
        self._store = store
        self._cache_ms = int(cache_seconds * 1000)
        self._now = now
        self._known: dict[bytes, _Verified] = {}
        self._touching: set[asyncio.Task[None]] = set()

    async def principal(self, key: str | None) -> Principal | None:
        """Who calls; None for a caller without a key.

        Raises:
            Unauthenticated: a key was sent that is unknown, mistyped, expired or revoked; the log tells which.
        """
        if key is None:
            return None
        now = self._now()
        sha256 = digest(key)
        known = self._known.get(sha256)
        if known and now - known.at < self._cache_ms:
            return known.principal
        principal = await self._verify(key, sha256, now)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[sha256] = _Verified(principal=principal, at=now)
        return principal

    async def close(self) -> None:
        """Wait for what is still being noted."""
        if self._touching:
            await asyncio.wait(self._touching)

    async def _verify(self, key: str, sha256: bytes, now: int) -> Principal:
        key_id = key_id_of(key)
        if key_id is None:
            raise _refused("malformed", None)
        found = await self._store.read(lambda reader: keys.credentials(reader, key_id))
        if found is None:
            raise _refused("unknown", key_id)
        if not any(hmac.compare_digest(stored, sha256) and (end is None or now < end) for stored, end in found.digests):
            raise _refused("wrong_secret", key_id)
        if found.revoked_at is not None:
            raise _refused("revoked", key_id)
        if found.expires_at is not None and now >= found.expires_at:
            raise _refused("expired", key_id)
        if found.last_used_at is None or now - found.last_used_at >= _TOUCH_MS:
            task = asyncio.create_task(self._touch(key_id, now))
            self._touching.add(task)
            task.add_done_callback(self._touching.discard)
        return principal_of(name=found.principal, key_id=key_id, key_scopes=found.scopes, grants=found.grants)

    async def _touch(self, key_id: str, now: int) -> None:
        """Beside the request: a database too busy to note the use of a key must not refuse its reads."""
        try:
            await self._store.write(lambda tx: keys.touch_key(tx, key_id=key_id, now=now))
        except Problem as problem:
            structlog.get_logger().warning("key_use_not_noted", key_id=key_id, reason=problem.detail)


def _refused(reason: str, key_id: str | None) -> Unauthenticated:
    structlog.get_logger().info("authentication_refused", reason=reason, key_id=key_id)
    return Unauthenticated()
