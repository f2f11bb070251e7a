"""A rate limit that several hosts share: each host leases blocks of tokens from buckets in the database (contract G20)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from workspaced.security.rate_limits import REMEMBERED, UNLIMITED, Allowance, Policy, RateLimit
from workspaced.storage.port import Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.security", "rate_buckets.sql")
_FREE_PART = 20
"""Each host grants a twentieth of the tokens without a lease. So a caller far below its limit causes no SQL statement."""
_BLOCK_PART = 10
_LEAST_WAIT = 0.25
"""If a bucket is empty, a host waits at least this number of seconds before it asks for tokens again."""


@dataclass(slots=True)
class _Leased:
    """The state of a caller's bucket, as far as this host knows it. Times are monotonic seconds."""

    rest: float
    """The number of tokens in the database at ``seen_at``."""
    seen_at: float
    held: int = 0
    """The number of tokens that this host has leased and not used."""
    empty_until: float = 0.0
    leasing: asyncio.Task[None] | None = None


class LeasedRateLimit:
    """A `workspaced.security.rate_limits.Limit` in a database. Each host may grant a twentieth more than the limit."""

    def __init__(self, policy: Policy, store: Store, *, clock: Callable[[], float]) -> None:
        """``clock`` returns monotonic seconds."""
        self._policy = policy
        self._store = store
        self._clock = clock
        free = Policy(policy.name, policy.per_minute / _FREE_PART, policy.burst // _FREE_PART)
        self._free = RateLimit(free, clock=clock) if free.burst else None
        self._block = max(policy.burst // _BLOCK_PART, 1)
        self._leased: dict[str, _Leased] = {}

    async def admit(self, caller: str) -> Allowance:
        """See `Limit`. Waits for the database only when a new block of tokens is leased."""
        if not self._policy.per_minute:
            return UNLIMITED
        leased = self._leased.pop(caller, None) or _Leased(rest=self._policy.burst, seen_at=self._clock())
        self._leased[caller] = leased
        if len(self._leased) > REMEMBERED:
            self._forget()
        if self._free and self._free.use(caller)[1]:
            return self._allowance(leased, allowed=True)
        while not leased.held:
            if self._clock() < leased.empty_until:
                return self._allowance(leased, allowed=False)
            if leased.leasing is None:
                leased.leasing = asyncio.create_task(self._lease(caller, leased))
            await asyncio.shield(leased.leasing)
        leased.held -= 1
        return self._allowance(leased, allowed=True)

    def look(self, caller: str) -> Allowance:
        """See `Limit`."""
        if not self._policy.per_minute:
            return UNLIMITED
        leased = self._leased.get(caller)
        if leased is None:
            return self._policy.allowance(self._policy.burst, allowed=True)
        return self._allowance(leased, allowed=bool(leased.held) or self._clock() >= leased.empty_until)

    async def drop_full(self) -> int:
        """Delete the rows of full buckets, because a caller without a row has a full bucket. Return how many were deleted."""
        if not self._policy.per_minute:
            return 0
        before = self._store.clock.now() - int(self._policy.burst / self._policy.per_second * 1_000)
        values = {"rate_limit": self._policy.name, "before": before}
        return await self._store.write(lambda tx: tx.run(_SQL["drop_full"], values))

    async def _lease(self, caller: str, leased: _Leased) -> None:
        try:
            granted, rest = await self._store.write(lambda tx: self._take_block(tx, caller))
        finally:
            leased.leasing = None
        now = self._clock()
        leased.held += granted
        leased.rest, leased.seen_at = rest, now
        if granted < self._block:
            leased.empty_until = now + max((1 - rest) / self._policy.per_second, _LEAST_WAIT)

    def _take_block(self, tx: Transaction, caller: str) -> tuple[int, float]:
        granted, rest = tx.existing(
            _SQL["lease"],
            {
                "rate_limit": self._policy.name,
                "caller": caller,
                "burst": self._policy.burst,
                "wanted": self._block,
                "per_ms": self._policy.per_second / 1_000,
                "now": self._store.clock.now(),
            },
        )
        return int(granted), float(rest)

    def _allowance(self, leased: _Leased, *, allowed: bool) -> Allowance:
        refilled = leased.rest + (self._clock() - leased.seen_at) * self._policy.per_second
        tokens = min(refilled + leased.held, float(self._policy.burst))
        return self._policy.allowance(tokens if allowed else min(tokens, 0.99), allowed=allowed)

    def _forget(self) -> None:
        """Forget the callers with the oldest last request. The few tokens that are leased for these callers are lost."""
        oldest = list(self._leased)[: REMEMBERED // 2]
        for caller in oldest:
            del self._leased[caller]
