"""What commands ask for, done on an open state file: by the daemon that holds it, or by the command where none runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ingestd.daemon.control.requests import (
    Answer,
    CheckDrift,
    DropRejected,
    Explain,
    Explained,
    ReadNotices,
    Reload,
    Request,
    RetryRejected,
    SourceNotices,
)
from ingestd.daemon.reload import Reloader
from ingestd.delivery.drift import DriftChecker, DriftCheckResult
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.rejections import RejectionKeeper, Retried, Selection
from ingestd.settings import PipelineSettings
from ingestd.settings.drift import Mode
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.rejected import RejectionsDropped, RejectionsRetried


class CommandHandler:
    """``again`` is told of each configured pipeline of which records are to be mapped again.

    ``explain`` says what is in the way of a partition; it may block. ``notices`` returns what an operator should know about
    the sources; it does not block.
    """

    def __init__(
        self,
        *,
        pipelines: Sequence[PipelineSettings],
        rejected: RejectionKeeper,
        checker: DriftChecker,
        again: Callable[[str], None],
        explain: Callable[[Explain], Explained],
        notices: Callable[[], tuple[OperatorNotice, ...]],
        reloader: Reloader,
        emit: Emit,
    ) -> None:
        self._pipelines = pipelines
        self._rejected = rejected
        self._checker = checker
        self._again = again
        self._explain = explain
        self._notices = notices
        self._reloader = reloader
        self._emit = emit

    async def perform(self, request: Request, by: str) -> Answer:
        """Do what is asked; ``by`` is the account that asks."""
        match request:
            case RetryRejected():
                return await self.retry(request.selection, by=by)
            case DropRejected():
                return await self.drop(request.selection, by=by)
            case CheckDrift():
                return await self.check(request.pipelines, mode=request.mode)
            case Explain():
                return await asyncio.to_thread(self._explain, request)
            case ReadNotices():
                return SourceNotices(notices=self._notices())
            case Reload():
                return await self._reloader.reload(by=by)

    async def retry(self, selection: Selection, *, by: str) -> Retried:
        """Put rejections back."""
        done = await self._rejected.retry(selection)
        self._emit(RejectionsRetried(by=by, chosen=str(selection), records=done.records, entries=done.entries))
        configured = {pipeline.name for pipeline in self._pipelines}
        for pipeline in configured.intersection(done.pipelines):
            self._again(pipeline)
        return done

    async def drop(self, selection: Selection, *, by: str) -> int:
        """Forget rejections."""
        count = await self._rejected.drop(selection)
        self._emit(RejectionsDropped(by=by, chosen=str(selection), rejections=count))
        return count

    async def check(self, names: Sequence[str], *, mode: Mode | None = None) -> tuple[DriftCheckResult, ...]:
        """Read the sinks of pipelines back, each sink once; ``mode`` None: each pipeline's own.

        Of a sink that several of them write, what is configured to be done is done for each by itself.
        """
        chosen = [pipeline for pipeline in self._pipelines if pipeline.name in names]
        results: dict[str, DriftCheckResult] = {}
        for sink in dict.fromkeys(pipeline.sink for pipeline in chosen):
            writers = [pipeline for pipeline in chosen if pipeline.sink == sink]
            by_mode: dict[tuple[Mode, bool], list[str]] = {}
            for pipeline in writers:
                plan = pipeline.drift
                by_mode.setdefault((mode or plan.mode, plan.remove_added), []).append(pipeline.name)
            for (what, remove_added), pipelines in by_mode.items():
                checked = await self._checker.check(sink, pipelines=pipelines, mode=what, remove_added=remove_added)
                results[checked.sink] = checked
        return tuple(results.values())
