"""Whether the daemon can do its work, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.web.metrics import DaemonLevels


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
