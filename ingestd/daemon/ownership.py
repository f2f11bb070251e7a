"""Comparison of sinks with their sources, after every pipeline of a sink has been read completely."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.core.clock import Now, Random
from ingestd.delivery.drift import DriftCheckResult
from ingestd.intake import PassReport
from ingestd.mirror.drift import SinkOwnership
from ingestd.mirror.sqlite import Observer
from ingestd.settings.drift import RemoveUnexplained
from ingestd.settings.model import PipelineSettings
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.delivery import SinkAdopted
from ingestd.telemetry.catalogue.drift import StateDoubted

_CAREFUL: tuple[RemoveUnexplained, ...] = ("keep", "own", "remove")
"""The values of ``unexplained``, most careful first. If several pipelines write a sink, the most careful value applies."""

_BACKOFF = Backoff(base_seconds=5.0, cap_seconds=600.0)
_MOST_STEPS = 4
"""The steps of `compare`: repair a doubtful sink, read its sources again, remove unexplained entries, find nothing to do."""


async def _ignore(_: SinkAddress) -> None:
    """Do nothing about a sink that was compared."""


class OwnershipKeeper:
    """Requests comparisons of sinks that may contain unexplained entries: after the daemon's start, and after each adoption.

    If the state file is in doubt, sinks are compared and repaired in the same way. Entries are removed only if three conditions
    are met: every pipeline of the sink was read completely in this process and since the adoption; no pipeline has rejections;
    all pipelines have ``deletes: remove``. If there is nothing to do, the cost is one query after the first pass.

    ``on_compared`` is awaited with a sink that may get entries again: the sink was compared, or no pipeline writes it
    any more. Call all methods except `waits_for` on the event loop's thread.
    """

    def __init__(
        self,
        *,
        pipelines: Sequence[PipelineSettings],
        status: Observer,
        check: Callable[..., Awaitable[DriftCheckResult]],
        now: Now,
        random: Random,
        on_compared: Callable[[SinkAddress], Awaitable[None]] = _ignore,
    ) -> None:
        self._on_compared = on_compared
        self._set_pipelines(pipelines)
        self._status = status
        self._check = check
        self._now = now
        self._random = random
        self._passes: dict[str, PassReport] = {}
        self._since: dict[SinkAddress, float] = {}
        self._open = set(self._writers)
        self._due: dict[SinkAddress, None] = {}
        self._changed = asyncio.Event()

    def _set_pipelines(self, pipelines: Sequence[PipelineSettings]) -> None:
        self._writers: dict[SinkAddress, list[PipelineSettings]] = {}
        for pipeline in pipelines:
            self._writers.setdefault(pipeline.sink, []).append(pipeline)
        self._sinks = {pipeline.name: pipeline.sink for pipeline in pipelines}

    def use(self, pipelines: Sequence[PipelineSettings]) -> set[str]:
        """Replace the pipelines. If the pipelines of a sink changed, the sink requires new passes of all its pipelines.

        Return the names of the unchanged pipelines of these sinks.
        """
        former = self._writers
        self._set_pipelines(pipelines)
        changed = {sink for sink, writers in self._writers.items() if former.get(sink) != writers}
        # A running comparison checks the identity of its list of pipelines, so unchanged lists are kept.
        self._writers.update((sink, writers) for sink, writers in former.items() if self._writers.get(sink) == writers)
        for sink in changed:
            self._open.add(sink)
            self._since[sink] = self._now()
        self._open &= self._writers.keys()
        for sink in former.keys() - self._writers.keys():
            self._due[sink] = None
            self._changed.set()
        self._passes = {
            name: report
            for name, report in self._passes.items()
            if name in self._sinks and self._sinks[name] not in changed
        }
        return {one.name for sink in changed for one in self._writers[sink] if one in former.get(sink, ())}

    def waits_for(self, pipeline: str) -> bool:
        """Return whether `note_pass` needs the passes of a pipeline now. Thread-safe."""
        return self._sinks.get(pipeline) in self._open

    def note_pass(self, report: PassReport) -> None:
        """Record the end of a pass over a pipeline's source."""
        sink = self._sinks.get(report.pipeline)
        if sink is None:  # the pipeline was removed during the pass
            return
        self._passes[report.pipeline] = report
        if sink in self._open:
            self._due[sink] = None
            self._changed.set()

    def note_event(self, event: Event) -> None:
        """Compare a sink again after its adoption, because it may contain unexplained entries.

        If the state is in doubt, compare all sinks.
        """
        if isinstance(event, SinkAdopted | StateDoubted):
            for sink in self._writers:
                if isinstance(event, StateDoubted) or str(sink) == event.sink:
                    self._reopen(sink)

    async def run(self, read: Callable[[str], None]) -> None:
        """Compare sinks as they become ready, until cancelled; ``read`` requests a reading of a pipeline."""
        failures = 0
        while True:
            await self._changed.wait()
            self._changed.clear()
            wanted, failed = await self._compare_due()
            for name in wanted:
                read(name)
            failures = failures + 1 if failed else 0
            if failed:
                await asyncio.sleep(_BACKOFF.delay(failures, self._random()))
                self._due.update(dict.fromkeys(failed))
                self._changed.set()

    async def compare(self, names: Collection[str], *, read: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """Compare the sinks that are ready. If a sink waits for pipelines in ``names``, ``read`` reads them again."""
        for _ in range(_MOST_STEPS):
            wanted, _ = await self._compare_due()
            again = [name for name in wanted if name in names]
            if not again:
                return
            await read(again)

    async def _compare_due(self) -> tuple[list[str], list[SinkAddress]]:
        """Compare due sinks. Return pipelines to read again, and sinks to compare later (not readable, or not delivered)."""
        wanted: list[str] = []
        failed: list[SinkAddress] = []
        while self._due:
            sink = next(iter(self._due))
            del self._due[sink]
            writers = self._writers.get(sink)
            if writers is None:
                await self._on_compared(sink)
                continue
            known = await asyncio.to_thread(self._status.ownership, sink)
            if known is None:
                if await self._is_read(sink, writers, held=True):
                    await self._on_compared(sink)
                continue
            removes = await asyncio.to_thread(self._removes, sink, writers, known)
            is_read = await self._is_read(sink, writers, held=False)
            if removes == "keep" and not known.doubt:
                if is_read:
                    self._close(sink, writers)
                if await self._is_read(sink, writers, held=True):
                    await self._on_compared(sink)
            elif not (is_read or (known.doubt and await self._is_read(sink, writers, held=True))):
                wanted += [one.name for one in writers if self._is_stale(one.name, sink)]
            elif not await self._compare(sink, writers, removes if is_read else "keep", doubt=bool(known.doubt)):
                failed.append(sink)
        return wanted, failed

    async def _compare(
        self, sink: SinkAddress, writers: list[PipelineSettings], removes: RemoveUnexplained, *, doubt: bool
    ) -> bool:
        checked = await self._check(
            sink,
            pipelines=[pipeline.name for pipeline in writers],
            mode="report",
            unexplained=removes,
            guards=[pipeline.guard for pipeline in writers],
            doubt=doubt,
        )
        if checked.status is None or checked.status.failure:
            return False
        if not checked.status.undecided:
            self._close(sink, writers)
            if (
                doubt and removes == "keep"
            ):  # entries of the service that the state file does not know are found only now
                self._reopen(sink)
        await self._on_compared(sink)
        return not checked.status.undecided

    def _close(self, sink: SinkAddress, writers: list[PipelineSettings]) -> None:
        """Require no further comparison of a sink, unless its pipelines changed during the comparison."""
        if self._writers.get(sink) is writers:
            self._open.discard(sink)

    def _reopen(self, sink: SinkAddress) -> None:
        """Require new passes of all pipelines of the sink."""
        self._open.add(sink)  # set before the time, so that only a pass that begins later counts
        self._since[sink] = self._now()
        self._due[sink] = None
        self._changed.set()

    async def _is_read(self, sink: SinkAddress, writers: list[PipelineSettings], *, held: bool) -> bool:
        """Return whether the sources of a sink were read completely. ``held``: ignore held runs and paused pipelines."""
        paused = {one.pipeline for one in await asyncio.to_thread(self._status.pauses)} if held else set()
        reports = [self._passes.get(pipeline.name) for pipeline in writers if pipeline.name not in paused]
        since = self._since.get(sink, 0.0)
        return all(
            one is not None and (one.complete or (held and one.names_all)) and one.began >= since for one in reports
        )

    def _is_stale(self, name: str, sink: SinkAddress) -> bool:
        """Return True if the last pass began before new passes were required. An unavailable source is read again anyway."""
        report = self._passes.get(name)
        return report is not None and report.began < self._since.get(sink, 0.0)

    def _removes(self, sink: SinkAddress, writers: list[PipelineSettings], known: SinkOwnership) -> RemoveUnexplained:
        """Return which unexplained entries of a sink may be removed now."""
        reports = [self._passes.get(pipeline.name) for pipeline in writers]
        chosen = min((pipeline.unexplained for pipeline in writers), key=_CAREFUL.index)
        if chosen == "keep" or known.rejected or not all(one is not None and one.whole for one in reports):
            return "keep"
        # In doubt, the service may have entries that the state file does not know yet.
        return chosen if known.doubt or self._status.unexplained_of(sink) else "keep"
