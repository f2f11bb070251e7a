"""Execution of commands, in the daemon or in the command's own process, and of scheduled drift checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from ingestd.core.errors import NotRolledBack, RunNotHeld
from ingestd.daemon.control.message import ReadStatus, StatusText
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import (
    CheckDrift,
    ControlPipeline,
    DecideRun,
    DropRejected,
    Explain,
    Explained,
    MoveCursor,
    ReadNotices,
    Reload,
    Request,
    Response,
    RetryRejected,
    RollBack,
    RunDecided,
    RunsUndone,
)
from ingestd.daemon.cursor_moves import CursorMover
from ingestd.daemon.pipeline_control import PipelineControl
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.reload import Reloader
from ingestd.delivery.drift import DriftChecker, DriftCheckResult
from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.change_signal import ChangeSignal
from ingestd.settings.drift import Mode
from ingestd.settings.model import PipelineSettings
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import RunReleased, RunsRolledBack
from ingestd.telemetry.catalogue.rejected import RejectionsDropped, RejectionsRetried

EXPLAIN_SECONDS = 20.0
"""How long an explanation may wait for a source, such as a share that does not respond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHandler:
    """Executes requests of commands.

    ``pipelines`` returns the configured pipelines, which a reload changes. ``request_reading`` requests a complete reading of a
    pipeline. ``explain`` returns why a partition waits; it may block. ``status`` returns the status as text, or as JSON if its
    argument is true; it blocks. ``sources`` returns what is known about the sources; it does not block.
    """

    pipelines: Callable[[], Sequence[PipelineSettings]]
    rejected: RejectedStore
    runs: IntakeStore
    stored: Observer
    checker: DriftChecker
    request_reading: Callable[[str], None]
    explain: Callable[[Explain], Explained]
    status: Callable[[bool], str]
    sources: Callable[[], SourceNotices]
    cursors: CursorMover
    control: PipelineControl
    reloader: Reloader
    emit: Emit
    explaining: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 2, thread_name_prefix="explain"))
    """Own threads for ``explain``. While a folder does not respond, it would occupy threads that the daemon needs."""

    async def perform(self, request: Request, by: str) -> Response:
        """Execute a request; ``by`` is the requesting account."""
        response: Response
        match request:
            case RetryRejected():
                response = await self.retry(request.selection, by=by)
            case DropRejected():
                response = await self.drop(request.selection, by=by)
            case CheckDrift():
                response = await self.check(request.pipelines, mode=request.mode)
            case Explain() | ReadStatus():
                response = await self._look(request)
            case ReadNotices():
                response = self.sources()
            case MoveCursor():
                response = await self.cursors.move(request, by=by)
            case ControlPipeline():
                response = await self.control.perform(request, by=by)
            case DecideRun() | RollBack():
                response = await self._act_on_run(request, by=by)
            case Reload():
                response = await self.reloader.reload(by=by)
            case _:
                raise RequestRefused("This daemon runs without --standby, so no other daemon takes over from it.")
        return response

    async def _look(self, request: Explain | ReadStatus) -> Response:
        """Return the response to a request that only reads."""
        if isinstance(request, Explain):
            explain = partial(copy_context().run, self.explain, request)  # the context has the time zone of the request
            try:
                async with asyncio.timeout(EXPLAIN_SECONDS):
                    return await asyncio.get_running_loop().run_in_executor(self.explaining, explain)
            except TimeoutError:
                raise RequestRefused(
                    f"The source of pipeline {request.pipeline} did not respond within {EXPLAIN_SECONDS:.0f} seconds, so it is"
                    f" not known why {request.partition} waits. Check its folder, share or server."
                ) from None
        return StatusText(text=await asyncio.to_thread(self.status, request.as_json))

    async def retry(self, selection: Selection, *, by: str) -> Retried:
        """Retry the selected rejections. Request a reading of each configured pipeline that has records to map again."""
        done = await self.rejected.retry(selection)
        self.emit(RejectionsRetried(by=by, chosen=str(selection), records=done.records, entries=done.entries))
        configured = {pipeline.name for pipeline in self.pipelines()}
        for pipeline in configured.intersection(done.pipelines):
            self.request_reading(pipeline)
        return done

    async def drop(self, selection: Selection, *, by: str) -> int:
        """Delete the selected rejections. Return how many rejections were deleted."""
        count = await self.rejected.drop(selection)
        self.emit(RejectionsDropped(by=by, chosen=str(selection), rejections=count))
        return count

    async def _act_on_run(self, request: DecideRun | RollBack, *, by: str) -> RunDecided | RunsUndone:
        if isinstance(request, RollBack):
            return await self.roll_back(request, by=by)
        return await self.decide(request, by=by)

    async def decide(self, request: DecideRun, *, by: str) -> RunDecided:
        """Approve or discard a held run."""
        decided = await asyncio.to_thread(self._decide, request, by)
        if decided.read_again:
            self.request_reading(decided.pipeline)
        return decided

    def _decide(self, request: DecideRun, by: str) -> RunDecided:
        """Approve or discard a held run. Blocks."""
        held = {one.run: one for one in self.stored.held_runs()}.get(request.run)
        read_again = False
        try:
            if request.decision == "approved":
                summary = self.runs.approve(request.run)
                created, updated, removed = summary.created, summary.updated, summary.removed
                read_again = summary.collided
            else:
                discarded = self.runs.discard(request.run)
                created, updated, removed = discarded.created, discarded.updated, discarded.removed
        except RunNotHeld as error:
            return RunDecided(refusal=str(error))
        pipeline, partition = (held.pipeline, held.partition) if held is not None else ("", "")
        self.emit(
            RunReleased(pipeline=pipeline, partition=partition, run=request.run, decision=request.decision, by=by)
        )
        return RunDecided(
            pipeline=pipeline,
            partition=partition,
            created=created,
            updated=updated,
            removed=removed,
            read_again=read_again,
            paused=any(pause.pipeline == pipeline for pause in self.stored.pauses()),
        )

    async def roll_back(self, request: RollBack, *, by: str) -> RunsUndone:
        """Roll runs back, or only return the planned changes. The sinks of the runs are compared with the service first."""
        chosen = request.selection
        try:
            pipelines = await asyncio.to_thread(self.stored.rollback_pipelines, chosen)
            checked = await self.check(pipelines, mode="report")
            unchecked = [
                f"{one.sink}: {one.status.failure}" for one in checked if one.status is not None and one.status.failure
            ]
            if request.only_plan:
                done = await asyncio.to_thread(self.stored.rollback_plan, chosen)
            else:
                done = await asyncio.to_thread(self.runs.roll_back, chosen, by=by)
        except NotRolledBack as error:
            return RunsUndone(refusal=str(error))
        if not request.only_plan:
            self.emit(
                RunsRolledBack(
                    chosen=str(chosen), runs=len(done.runs), restored=done.restored, removed=done.removed,
                    created=done.created, left=done.left_count, by=by,
                )
            )  # fmt: skip
        return RunsUndone(done=done, unchecked=tuple(unchecked))

    async def check(self, names: Collection[str], *, mode: Mode | None = None) -> tuple[DriftCheckResult, ...]:
        """Compare the sinks of the pipelines ``names`` with the service. ``mode`` None: use the mode of each pipeline.

        If several pipelines write a sink, each group of pipelines with the same drift settings is checked separately.
        """
        chosen = [pipeline for pipeline in self.pipelines() if pipeline.name in names]
        results: dict[str, DriftCheckResult] = {}
        for sink in dict.fromkeys(pipeline.sink for pipeline in chosen):
            writers = [pipeline for pipeline in chosen if pipeline.sink == sink]
            by_mode: dict[tuple[Mode, bool], list[str]] = {}
            for pipeline in writers:
                plan = pipeline.drift
                by_mode.setdefault((mode or plan.mode, plan.remove_added), []).append(pipeline.name)
            for (what, remove_added), pipelines in by_mode.items():
                checked = await self.checker.check(sink, pipelines=pipelines, mode=what, remove_added=remove_added)
                if not (checked.sink in results and results[checked.sink].lost):
                    results[checked.sink] = checked
        return tuple(results.values())


class DriftQueue:
    """Checks the sinks of due pipelines, one pipeline at a time, to leave capacity for the delivery."""

    def __init__(self, command_handler: CommandHandler) -> None:
        self._command_handler = command_handler
        self._due: dict[str, None] = {}
        self._changes = ChangeSignal()

    def add(self, pipeline: str) -> None:
        """Add a pipeline. A pipeline that is already in the queue is checked once. Call this method on the event loop."""
        self._due[pipeline] = None
        self._changes.notify()

    async def run(self) -> None:
        """Check due pipelines until cancelled."""
        while True:
            known = self._changes.generation
            while self._due:
                pipeline = next(iter(self._due))
                del self._due[pipeline]
                await self._command_handler.check([pipeline])
            await self._changes.wait_past(known)
