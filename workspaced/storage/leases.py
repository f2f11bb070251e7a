"""Leases of jobs that only one process runs at a time (contract P4): a row for each, which expires when its holder dies."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.storage", "leases.sql")


class JobLeases:
    """The leases of one process. A lease is renewed while its job runs, so it may be short: after a crash it expires soon."""

    def __init__(self, store: Store, *, now: Callable[[], int], seconds: float = 20.0) -> None:
        """``now`` returns milliseconds since 1970; the clocks of processes that share the database must agree roughly."""
        self._store = store
        self._now = now
        self.seconds = seconds
        """After this time without a renewal another process may take a lease."""
        self._holder = str(uuid.uuid4())

    @asynccontextmanager
    async def held(self, job: str) -> AsyncIterator[bool]:
        """Yield whether this process holds the job's lease during the block; if not, another process does.

        Raises:
            UnavailableProblem: the database is not available.
        """
        if not await self._take(job):
            yield False
            return
        renewing = asyncio.create_task(self._renew(job))
        try:
            yield True
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            values = {"job": job, "holder": self._holder}
            await asyncio.shield(self._store.write(lambda tx: tx.run(_SQL["release"], values)))

    async def _take(self, job: str) -> bool:
        now = self._now()
        values = {"job": job, "holder": self._holder, "now": now, "ends_at": now + int(self.seconds * 1_000)}
        return bool(await self._store.write(lambda tx: tx.run(_SQL["take"], values)))

    async def _renew(self, job: str) -> None:
        while True:
            await asyncio.sleep(self.seconds / 3)
            try:
                await self._take(job)
            except UnavailableProblem:  # the job meets the same problem and reports it
                continue
