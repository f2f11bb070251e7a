"""The current gauges of a running daemon, for metrics and health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Final

import msgspec

from ingestd.core.errors import MirrorError
from ingestd.core.pipeline_state import State
from ingestd.daemon.assembly import Assembly
from ingestd.daemon.pipeline_states import StoredFacts, derive_states, other_failures, read_facts
from ingestd.mirror.sqlite import damage_named
from ingestd.web.event_counts import EventCounts
from ingestd.web.metrics import DaemonLevels


async def read_levels(assembly: Assembly, counts: EventCounts, executor: Executor) -> DaemonLevels:
    """Collect the gauges. The lanes are read on the event loop, and all other facts in a thread of ``executor``."""
    lanes = assembly.dispatcher.report()
    limit = assembly.dispatcher.limiter.limit
    loop = asyncio.get_running_loop()

    def read() -> DaemonLevels:
        mirror, configuration, sources = assembly.mirror.status, assembly.configuration, assembly.sources()
        state = configuration.settings.state
        stored: StoredFacts | None
        try:
            with damage_named(state):
                stored = read_facts(mirror, rejected=mirror.rejected_by_pipeline(), runs=True)
        except MirrorError:
            stored = None  # `check_readiness` reports the failure
        configured = configuration.settings.pipelines
        return DaemonLevels(
            now=time.time(),
            pipelines={one.name: one.sink for one in configured},
            counts=counts.read(),
            requests=assembly.request_counts,
            request_limit=limit,
            lanes=lanes,
            passes=assembly.passes,
            sources=sources,
            state=state,
            unwritable=assembly.notices.unwritable(),
            stored=stored,
            standby=assembly.standby_status(),
            states=derive_states(stored, configured, sources) if stored is not None else (),
        )

    return await loop.run_in_executor(executor, read)


NOT_READY: Final = ("unavailable", "failed")
"""The states of a pipeline that make the daemon not ready. ``disabled`` is omitted, because a person chose this state."""


class ReadinessReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the daemon is ready. ``reasons``: why it is not ready, or empty. ``pipelines``: the state of each pipeline."""

    ready: bool
    reasons: tuple[str, ...]
    pipelines: Mapping[str, State]


def check_readiness(levels: DaemonLevels) -> ReadinessReport:
    """Return whether the state file can be written, every part runs, and no pipeline is `NOT_READY`."""
    reasons = tuple(_reasons(levels))
    return ReadinessReport(ready=not reasons, reasons=reasons, pipelines={one.name: one.state for one in levels.states})


def _reasons(levels: DaemonLevels) -> Iterator[str]:
    if levels.unwritable:
        yield levels.unwritable
    if levels.stored is None:
        yield f"The state file {levels.state} cannot be read."
        return
    yield from other_failures(levels.stored.failed_parts, levels.pipelines.items())
    for one in levels.states:
        if one.state in NOT_READY:
            yield from (f"{one.name} is {why.state}: {why.sentence}" for why in one.reasons if why.state in NOT_READY)
    sinks = set(levels.pipelines.values())
    for lane in levels.lanes:
        if lane.sentence and lane.sink not in sinks:  # the lane of a pipeline that is no longer configured
            yield f"Delivery is blocked. {lane}"
