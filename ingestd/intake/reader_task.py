"""Calls one reader: reads when there is a reason to, and notifies its connector of acknowledged partitions."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from ingestd.core.backoff import Backoff
from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.intake.pass_report import PassReport
from ingestd.intake.pause import IntakePause
from ingestd.intake.reader import Reader
from ingestd.intake.rescans import Rescans
from ingestd.intake.thread_pool import SourceThreads
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.supervision import one_line
from ingestd.sdk import Listens, Watches
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceAway, SourceBack, SourceFailed

T = TypeVar("T")

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
_FULL_DISK_SECONDS = 10.0
"""Time until an acknowledgement that could not be stored is repeated."""
_LONGEST_RETRY_SECONDS = 86_400.0
_LOOKUP_SECONDS = 5.0
"""Time between two checks of the files of lookups."""
_GRIDS_SECONDS = (10.0, 1.0)
"""Rescans are due at multiples of one of these intervals: the first that is shorter than half of the source's rescan interval.
So one call of a thread makes the rescans of many sources."""


class MadePass(NamedTuple):
    """The result of a pass, and of the steps after it.

    ``ready``: the seconds until a file is ready; ``rescan``: the seconds until the next rescan; ``acknowledged``: the result of
    `acknowledge`.
    """

    report: PassReport
    ready: float | None
    rescan: float | None
    acknowledged: bool


class ReaderTask:
    """Calls one reader when there is a reason to, one call at a time. ``former``: the pipeline's removed task and its end."""

    def __init__(
        self,
        reader: Reader,
        *,
        threads: SourceThreads,
        rescans: Rescans[MadePass],
        pause: IntakePause,
        emit: Emit,
        random: Callable[[], float],
        watched: bool,
        former: tuple[ReaderTask, asyncio.Task[None]] | None,
    ) -> None:
        self.reader = reader
        self.parts: list[asyncio.Task[None]] = []
        self._pause = pause
        self._threads = threads
        self._rescans = rescans
        self._emit = emit
        self._random = random
        self._watched = watched
        self.turn: asyncio.Lock = former[0].turn if former is not None else asyncio.Lock()
        self._former = former[1] if former is not None else None
        self._wakeup = ChangeSignal()
        self._to_read = watched
        self._failures = 0
        self._not_before = 0.0
        self.has_failed = False
        """Whether the last pass could not read the source at all or in part."""
        self._has_jitter = True
        self._rescan_at: float | None = None
        """The loop time of the next rescan; a later request replaces this time."""
        self._rescanned: Future[MadePass] | None = None
        """A pass of `Rescans` with a result that `run` has to handle."""

    @property
    def pipeline(self) -> str:
        """The name of the pipeline."""
        return self.reader.pipeline

    def wake(self, *, read: bool) -> None:
        """Notify the connector of acknowledged partitions, and read if ``read``. Thread-safe.

        A call before `run` takes effect when `run` starts, because the schedule may request a missed run before that.
        """
        if read:
            self._to_read = True
        self._wakeup.notify()

    def pause(self, paused: bool) -> None:
        """Pause or resume reading. After a pause, the source is read if it has no schedule, or if it missed a run."""
        self.reader.pause(paused)
        if not paused:
            self.wake(read=self._watched)

    @property
    def wait_seconds(self) -> float:
        """The remaining seconds for which the source asked not to be read; 0 if it may be read."""
        return max(0.0, self._not_before - self._in(0.0))

    async def run(self) -> None:
        """Read when there is a reason to, until cancelled. If this method is called again after a failure, it reads at once."""
        if self._former is not None:
            await asyncio.wait([self._former])
            self._former = None
        watch = ExitStack()
        try:
            await self.in_thread(lambda: self._watch(watch))
            read_at: float | None = None
            while True:
                known = self._wakeup.generation
                acknowledged: bool | None = None
                if self.reader.is_paused:  # a pass that becomes due during the pause is made when the pause ends
                    self._to_read, read_at = self._to_read or read_at is not None, None
                elif self._to_read and asyncio.get_running_loop().time() < self._not_before:
                    # The schedule can't end this wait, because the source asked for it.
                    read_at = self._not_before
                elif self._to_read:
                    read_at, acknowledged = await self._read()
                if acknowledged is None:
                    acknowledged = await self.in_thread(self.acknowledge)
                if not acknowledged:
                    retry_at = self._in(_FULL_DISK_SECONDS)
                    read_at = retry_at if read_at is None else min(read_at, retry_at)
                seconds = None if read_at is None else max(0.0, read_at - asyncio.get_running_loop().time())
                if not await self._wakeup.wait_past(known, seconds=seconds):
                    self._to_read = True
        finally:
            self._rescan_at = None
            self._to_read = self._to_read or self._watched
            await self.guarded("ending the watch", watch.close)

    @property
    def watches_lookups(self) -> bool:
        """Whether a changed lookup file wakes the source. A scheduled source reads its lookup files when it is due."""
        return self._watched and bool(self.reader.lookups)

    async def watch_lookups(self) -> None:
        """Read when a file of a lookup may have changed, until cancelled."""
        lookups = self.reader.lookups
        # The files are polled, because a watch does not report changes of a file on a network share.
        while lookups is not None:
            await asyncio.sleep(_LOOKUP_SECONDS)
            if not self._to_read and await self.in_thread(lookups.may_differ):
                self.wake(read=True)

    def acknowledge(self) -> bool:
        """Notify the connector of acknowledged partitions; return False if a full disk prevents it. Blocks."""
        try:
            self.reader.acknowledge_partitions()
        except MirrorFull:
            return False
        return True

    async def read_until_ready(self) -> list[PassReport]:
        """Read until no file becomes ready soon. An unexpected exception adds a report with ``broken``."""
        reports: list[PassReport] = []
        while True:
            done = await self.guarded("reading", lambda: (self.reader.read_pass(), self.reader.connector.waiting()))
            if isinstance(done, str):
                return [*reports, PassReport(pipeline=self.reader.pipeline, broken=done)]
            report, wait = done
            reports.append(report)
            if wait is None or report.away:
                return reports
            await asyncio.sleep(wait)

    async def guarded(self, doing: str, call: Callable[[], T]) -> T | str:
        """Call the source; log an unexpected exception and return a sentence about it.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            return await self.in_thread(call)
        except MirrorError:
            raise
        except Exception as error:  # noqa: BLE001 - a plug-in's failure must not stop the other sources
            sentence = (
                f"The source failed while {doing}: {one_line(error)}. The log has the traceback; please report it."
            )
            self._emit(
                SourceFailed(
                    pipeline=self.reader.pipeline,
                    sentence=sentence,
                    traceback="".join(traceback.format_exception(error)),
                )
            )
            return sentence

    async def cancel_parts(self) -> None:
        """End `run` and `watch_lookups`; a running call of the source ends first."""
        for part in self.parts:
            part.cancel()
        if self.parts:
            await asyncio.wait(self.parts)

    async def close(self) -> None:
        """Close the source after its running call has ended."""
        await self.guarded("closing", self.reader.connector.close)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call the source after its earlier call has ended, even if the caller of the earlier call was cancelled."""
        await self.turn.acquire()
        try:
            future = await self._threads.start(lambda: self.pipeline, call)
        except BaseException:
            self.turn.release()
            raise
        future.add_done_callback(lambda _: self.turn.release())
        return await asyncio.shield(future)

    def _watch(self, stack: ExitStack) -> None:
        connector = self.reader.connector
        if self._watched and isinstance(connector, Watches):
            stack.enter_context(connector.watch(lambda: self.wake(read=True)))
        if isinstance(connector, Listens):
            stack.enter_context(connector.listen(lambda: self.wake(read=True)))

    async def _read(self) -> tuple[float | None, bool | None]:
        """Make one pass. Return the loop time of the next pass, unless a wake-up or a rescan comes first; None: no time is set.

        Also return the result of `acknowledge` after the pass; None if a full disk ended the pass.
        """
        self._to_read = False
        self._rescan_at = None
        try:
            async with self._pause.attempt(self.pipeline) as attempt:
                rescanned, self._rescanned = self._rescanned, None
                made = rescanned.result() if rescanned is not None else await self.in_thread(self.make_pass)
                attempt.wrote = bool(made.report.read)
        except MirrorFull:
            return self._in(0.0), None  # the pause delays the next attempt
        except Exception:
            self._to_read = True
            raise
        report = made.report
        self._to_read = self._to_read or report.cut
        self.has_failed = bool(report.failure or report.rejected)
        if report.away:
            self._failures += 1
            asked = min(report.retry_after, _LONGEST_RETRY_SECONDS)
            self._not_before = self._in(asked) if asked > 0 else 0.0
            delay = max(asked, _BACKOFF.delay(self._failures, self._random()))
            self._emit(
                SourceAway(pipeline=self.reader.pipeline, sentence=report.away, retry_in_seconds=round(delay, 1))
            )
            return self._in(delay), made.acknowledged
        if self._failures:
            self._failures = 0
            self._emit(SourceBack(pipeline=self.reader.pipeline))
        self._add_rescan(made.rescan)
        return self._in(made.ready) if made.ready is not None else None, made.acknowledged

    async def begin_rescan(self, at: float) -> bool:
        """See `RestingSource.begin_rescan`. If the source is not at rest, `run` reads it."""
        if at != self._rescan_at:
            return False
        self._rescan_at = None
        is_asked = self._to_read or self._failures or self._not_before > self._in(0.0) or self.reader.is_paused
        if is_asked or self.turn.locked() or self._pause.is_paused:
            self.wake(read=True)
            return False
        await self.turn.acquire()
        return True

    def end_rescan(self, outcome: Future[MadePass] | None) -> None:
        """See `RestingSource.end_rescan`."""
        self.turn.release()
        if outcome is None:
            return
        made = outcome.result() if outcome.exception() is None else None
        if made is not None and made.acknowledged and made.ready is None and not made.report.away:
            self.has_failed = bool(made.report.failure)
            self._add_rescan(made.rescan)
        else:
            self._rescanned = outcome
            self.wake(read=True)

    def make_pass(self) -> MadePass:
        """Make one pass, then `acknowledge`. Blocks."""
        report = self.reader.read_pass()
        connector = self.reader.connector
        rescan = connector.rescan_seconds if self._watched and isinstance(connector, Watches) else None
        # If every run changed entries, no partition can be acknowledged before these entries, and their acknowledgement wakes
        # this task. Until then, `acknowledge` would only delay the delivery.
        is_pending = bool(report.read) and all(run.created or run.updated or run.removed for run in report.read)
        return MadePass(report, connector.waiting(), rescan, is_pending or self.acknowledge())

    def _in(self, seconds: float) -> float:
        """Return the loop time in ``seconds`` from now."""
        return asyncio.get_running_loop().time() + seconds

    def _add_rescan(self, seconds: float | None) -> None:
        if seconds is None:
            return
        # The first rescan has jitter, so that sources that start together are not always rescanned together.
        due = self._in(seconds * (1 - self._random() / 2) if self._has_jitter else seconds)
        self._has_jitter = False
        grid = next((grid for grid in _GRIDS_SECONDS if seconds > 2 * grid), 0.0)
        self._rescan_at = math.floor(due / grid) * grid if grid else due
        self._rescans.add(self, self._rescan_at)
