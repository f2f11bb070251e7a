"""Jobs that run periodically, such as purging deleted workspaces and dropping expired data."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from workspaced.core.problems import Problem
from workspaced.storage.leases import JobLeases


class MaintenanceJobs:
    """Runs its jobs periodically, one after the other. Only one process runs a job at a time (contract P4).

    Jobs must tolerate being run twice, because a lease can expire. If another process held one, all jobs are tried again
    when its lease would have expired: the process may have been killed.
    """

    def __init__(
        self,
        jobs: Mapping[str, Callable[[], Awaitable[int]]],
        *,
        leases: JobLeases,
        every_seconds: float,
        observer: Callable[[str, str, int], None] = lambda _job, _outcome, _dropped: None,
    ) -> None:
        """Each job returns how many rows it dropped; ``observer`` gets its name, done, postponed or failed, and the rows."""
        self._jobs = jobs
        self._leases = leases
        self._observer = observer
        self._every_seconds = every_seconds
        self._running = asyncio.Lock()

    async def run(self) -> None:
        """Run all jobs until cancelled; the first time at once."""
        while True:
            all_held = await self.once()
            await asyncio.sleep(self._every_seconds if all_held else min(self._every_seconds, self._leases.seconds))

    async def once(self) -> bool:
        """Run each job that no other process is running, and return whether that were all.

        A job that is not possible now is logged and runs next time. Waits for a run in this process, because leases do not
        exclude jobs of the same process.
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
                log.warning("upkeep_postponed", reason=problem.detail)
                self._observer(name, "postponed", 0)
            except Exception:
                log.exception("upkeep_failed")
                self._observer(name, "failed", 0)
            else:
                self._observer(name, "done", dropped)
                if dropped:
                    log.info("upkeep_done", dropped=dropped)
        return all_held
