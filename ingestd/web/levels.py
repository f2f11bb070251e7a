"""The present levels of a running daemon, for metrics and health."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor

from ingestd.core.errors import MirrorError
from ingestd.daemon.assembly import Assembly
from ingestd.mirror.failed_parts import FailedPart
from ingestd.mirror.port import HeldRun, SinkBacklog
from ingestd.mirror.sqlite import damage_named
from ingestd.sdk import ListsWaiting
from ingestd.web.event_counts import EventCounts
from ingestd.web.metrics import DaemonLevels


async def read_levels(assembly: Assembly, counts: EventCounts, executor: Executor) -> DaemonLevels:
    """Collect the levels. Lanes belong to the event loop; the rest is read by a thread of ``executor``."""
    lanes = assembly.dispatcher.report()
    limit = assembly.dispatcher.limiter.limit
    loop = asyncio.get_running_loop()

    def read() -> DaemonLevels:
        backlog: list[SinkBacklog] | None = None
        rejected: dict[str, int] = {}
        held: list[HeldRun] = []
        failed: list[FailedPart] = []
        status, state = assembly.mirror.status, assembly.configuration.settings.state
        try:
            with damage_named(state):
                rejected, held, failed = status.rejected_by_pipeline(), status.held_runs(), status.failed_parts()
                backlog = status.backlog()
        except MirrorError:
            backlog = None  # `check_readiness` reports it
        return DaemonLevels(
            now=time.time(),
            pipelines=[reader.pipeline for reader in assembly.readers],
            counts=counts.read(),
            requests=assembly.request_counts,
            request_limit=limit,
            lanes=lanes,
            passes=assembly.passes,
            waiting={
                (reader.pipeline, reason): count
                for reader in assembly.readers
                if isinstance(reader.connector, ListsWaiting)
                for reason, count in reader.connector.count_waiting().items()
            },
            health=assembly.supervisor.health(),
            state=state,
            unwritable=assembly.notices.unwritable(),
            backlog=backlog,
            rejected=rejected,
            held=held,
            failed_parts=failed,
        )

    return await loop.run_in_executor(executor, read)
