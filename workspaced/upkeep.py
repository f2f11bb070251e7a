"""What the service does by itself from time to time: purge deleted workspaces, drop what has had its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from workspaced.problems import Problem


class Upkeep:
    """Jobs that come round, one after the other. Each must be harmless when done twice, or by two processes at once."""

    def __init__(self, jobs: Mapping[str, Callable[[], Awaitable[int]]], *, every_seconds: float) -> None:
        """Each job returns how much it dropped."""
        self._jobs = jobs
        self._every_seconds = every_seconds

    async def run(self) -> None:
        """Go round until cancelled, the first time at once."""
        while True:
            await self.once()
            await asyncio.sleep(self._every_seconds)

    async def once(self) -> None:
        """Do every job. One that can't be done now is told and done the next time."""
        for name, job in self._jobs.items():
            log = structlog.get_logger().bind(job=name)
            try:
                dropped = await job()
            except Problem as problem:
                log.warning("upkeep_postponed", reason=problem.detail)
            except Exception:
                log.exception("upkeep_failed")
            else:
                if dropped:
                    log.info("upkeep_done", dropped=dropped)
