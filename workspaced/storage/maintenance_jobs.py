"""Jobs that run periodically, such as purging deleted workspaces and dropping expired data."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog

from workspaced.core.problems import Problem, UnavailableProblem
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.storage", "leases.sql")


class JobLeases:
    """The leases of one process. A lease is renewed while its job runs, so it can be short and expires soon after a crash."""

    def __init__(self, store: Store, *, now: Callable[[], int], seconds: float = 20.0) -> None:
        """``now`` returns milliseconds since 1970, by the clock of the store: processes that share a database must agree."""
        self._store = store
        self._now = now
        self.seconds = seconds
        """After this time without a renewal another process may take a lease."""
        self._holder = str(uuid.uuid4())

    @asynccontextmanager
    async def held(self, job: str) -> AsyncIterator[bool]:
        """Yield whether this process holds the job's lease until the context ends; if not, another process holds the lease.

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


class MaintenanceJobs:
    """Runs its jobs periodically, one after the other. Only one process runs a job at a time (contract P4).

    A job must permit two concurrent runs, because a lease can expire. If another process held a lease, all jobs are tried again
    after the end of the lease, because that process may have been killed.
    """

    def __init__(
        self,
        jobs: Mapping[str, Callable[[], Awaitable[int]]],
        *,
        leases: JobLeases,
        every_seconds: float,
        observer: Callable[[str, str, int], None] = lambda _job, _outcome, _dropped: None,
    ) -> None:
        """Each job returns how many rows it dropped.

        ``observer`` gets the job's name, the outcome (``done``, ``postponed`` or ``failed``), and the number of rows.
        """
        self._jobs = jobs
        self._leases = leases
        self._observer = observer
        self._every_seconds = every_seconds
        self._running = asyncio.Lock()

    async def run(self) -> None:
        """Run all jobs now, and then periodically until cancelled."""
        while True:
            all_held = await self.once()
            await asyncio.sleep(self._every_seconds if all_held else min(self._every_seconds, self._leases.seconds))

    async def once(self) -> bool:
        """Run each job that no other process is running, and return whether all jobs were run.

        A failed job is logged and runs again next time. This call waits for a run that is in progress in this process, because
        leases do not exclude jobs of the same process.
        """
        async with self._running:
            return await self._run_all()

    async def _run_all(self) -> bool:
        all_held = True
        for name, job in self._jobs.items():
            log = structlog.get_logger().bind(job=name)
            try:
                async with self._leases.held(name) as is_held:
                    if not is_held:
                        all_held = False
                        continue
                    dropped = await job()
            except Problem as problem:
                log.warning("maintenance_postponed", reason=problem.detail)
                self._observer(name, "postponed", 0)
            except Exception:
                log.exception("maintenance_failed")
                self._observer(name, "failed", 0)
            else:
                self._observer(name, "done", dropped)
                if dropped:
                    log.info("maintenance_done", dropped=dropped)
        return all_held
