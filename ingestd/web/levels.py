"""The present levels of a running daemon, for metrics and health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Executor

import msgspec

from ingestd.core.clock import moment
from ingestd.core.errors import MirrorError
from ingestd.core.phrases import counted
from ingestd.daemon.assembly import Assembly
from ingestd.mirror.port import HeldRun, SinkBacklog
from ingestd.mirror.reports import FailedPart
from ingestd.mirror.sqlite import damage_named
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


class ReadinessReport(msgspec.Struct, frozen=True, kw_only=True):
    """``reasons``: why the daemon is not ready; empty if it is."""

    ready: bool
    reasons: tuple[str, ...]


def check_readiness(levels: DaemonLevels) -> ReadinessReport:
    """Return whether the state file can be written, every part runs, and each source and sink can be reached."""
    reasons = tuple(_reasons(levels))
    return ReadinessReport(ready=not reasons, reasons=reasons)


def _reasons(levels: DaemonLevels) -> Iterator[str]:
    if levels.backlog is None:
        yield f"The state file {levels.state} cannot be read."
    if levels.unwritable:
        yield levels.unwritable
    for part in levels.failed_parts:
        yield f"{part.part} failed {counted(part.failures, 'time')} and restarts {moment(part.retry_at)}: {part.sentence}"
    for name in levels.pipelines:
        if failure := levels.passes.failure(name):
            yield f"The source of {name} cannot be read: {failure}"
    for lane in levels.lanes:
        if lane.sentence:  # it stays while the lane tries again
            yield f"Delivery is blocked. {lane}"
