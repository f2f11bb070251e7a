"""Jobs that one process at a time does (contract P4): a row for each, held while the job runs, free when its holder died."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ingestd.process.statements import load_statements
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import Store

_SQL = load_statements("workspaced.storage", "leases.sql")


class JobLeases:
    """One process's claims. A lease is renewed while its job runs, so it may be short: what a crash leaves ends soon."""

    def __init__(self, store: Store, *, now: Callable[[], int], seconds: float = 60.0) -> None:
        """``now`` is milliseconds since 1970; every process that shares the database must have about the same."""
        self._store = store
        self._now = now
        self._seconds = seconds
        self._holder = str(uuid.uuid4())

    @asynccontextmanager
    async def held(self, job: str) -> AsyncIterator[bool]:
        """Whether the job is ours for the block; if not, another process is at it.

        Raises:
            UnavailableProblem: the database can't tell.
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
            await asyncio.shield(self._store.write(lambda tx: tx.run(_SQL["give_back"], values)))

    async def _take(self, job: str) -> bool:
        now = self._now()
        values = {"job": job, "holder": self._holder, "now": now, "ends_at": now + int(self._seconds * 1_000)}
        return bool(await self._store.write(lambda tx: tx.run(_SQL["take"], values)))

    async def _renew(self, job: str) -> None:
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                await self._take(job)
            except UnavailableProblem:  # the job itself meets the same, and says so
                continue
