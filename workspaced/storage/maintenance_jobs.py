"""What the service does by itself from time to time: purge deleted workspaces, drop what has had its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from workspaced.core.problems import Problem
from workspaced.storage.leases import JobLeases


class MaintenanceJobs:
    """Jobs that come round, one after the other; of several processes one does a job (contract P4).

    Each must be harmless when done twice: a lease can run out.
    """

    def __init__(
        self,
        jobs: Mapping[str, Callable[[], Awaitable[int]]],
        *,
        leases: JobLeases,
        every_seconds: float,
        observer: Callable[[str, str, int], None] = lambda _job, _outcome, _dropped: None,
    ) -> None:
        """Each job returns how much it dropped. ``observer`` is told how it ended (done, postponed, failed), and that number."""
        self._jobs = jobs
        self._leases = leases
        self._observer = observer
        self._every_seconds = every_seconds
        self._round = asyncio.Lock()

    async def run(self) -> None:
        """Go round until cancelled, the first time at once."""
        while True:
            await self.once()
            await asyncio.sleep(self._every_seconds)

    async def once(self) -> None:
        """Do every job that no other process is at. One that can't be done now is told and done the next time.

        A round that is under way in this process is waited for: its leases would be ours, too.
        """
        async with self._round:
            await self._go_round()

    async def _go_round(self) -> None:
        for name, job in self._jobs.items():
            log = structlog.get_logger().bind(job=name)
            try:
                async with self._leases.held(name) as ours:
                    if not ours:
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
