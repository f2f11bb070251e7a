"""Runs the blocking calls of all sources in a bounded number of threads. A source that hangs does not block other sources."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from ingestd.process.progress import progress_of
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceSlow

T = TypeVar("T")

THREADS = 8
"""Maximum number of sources called at the same time; more threads would only wait for the interpreter and the state file."""
SPARE_THREADS = 24
"""Maximum number of slow calls that do not delay other sources; each further slow call occupies one of the ``THREADS``."""
SLOW_SECONDS = 30.0
FAST_SECONDS = 0.01
"""Most calls for unchanged sources return within this time. A further thread starts only after this time."""

SLOW_SENTENCE = (
    f"A call of the source has made no progress for {SLOW_SECONDS:.0f} seconds; it reads the source, or stores records. The"
    " other sources continue in other threads. If it does not end by itself, check that the file system or server that the source"
    " reads responds, and that the disk of the state file is not overloaded."
)


class SourceThreads:
    """The threads for blocking calls. Belongs to one event loop.

    A call starts when the call before it has returned or has taken ``fast_seconds``. So calls for unchanged sources follow each
    other in one thread, instead of competing for the interpreter.

    A call that takes longer than ``SLOW_SECONDS`` no longer counts towards ``THREADS``, so the other sources are called in a
    further thread. The slow call is reported if it makes no step for this time; see `note_progress`.
    """

    def __init__(self, *, emit: Emit, fast_seconds: float = FAST_SECONDS) -> None:
        self._emit = emit
        self._fast_seconds = fast_seconds
        self._executor = ThreadPoolExecutor(THREADS + SPARE_THREADS, thread_name_prefix="source")
        self._free = asyncio.Semaphore(THREADS)
        self._turn = asyncio.Semaphore(1)
        """Held by the newest call while the call may still be fast."""
        self._spare: list[_RunningCall] = []
        """Calls that do not count towards ``THREADS``."""

    async def start(self, pipeline: Callable[[], str], call: Callable[[], T]) -> asyncio.Future[T]:
        """Wait for a free thread and start ``call`` in it; ``pipeline`` returns the name of the source for reports.

        The returned future ends with the call. If the caller is cancelled while it waits, nothing starts.
        """
        await self._turn.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            self._turn.release()
            raise
        loop = asyncio.get_running_loop()
        running = _RunningCall(pipeline, started=loop.time())
        try:
            future = loop.run_in_executor(self._executor, running.perform, call)
        except BaseException:
            self._turn.release()
            self._free.release()
            raise
        running.turn = loop.call_later(self._fast_seconds, self._end_turn, running)
        running.timer = loop.call_later(SLOW_SECONDS, self._look_at, running)
        future.add_done_callback(lambda _: self._end(running))
        return future

    def slow(self) -> list[str]:
        """Return the pipelines of calls that have made no step for ``SLOW_SECONDS``. Thread-safe."""
        return [call.pipeline() for call in list(self._spare) if call.is_silent]

    def _look_at(self, call: _RunningCall) -> None:
        """Give the call a separate thread, and report it if it has made no step since the last check."""
        loop = asyncio.get_running_loop()
        call.timer = loop.call_later(SLOW_SECONDS, self._look_at, call)
        if call not in self._spare:
            if len(self._spare) == SPARE_THREADS:
                return
            self._spare.append(call)
            self._free.release()
        was_silent, call.is_silent = call.is_silent, not call.has_progressed()
        if call.is_silent and not was_silent:
            seconds = round(loop.time() - call.started, 1)
            self._emit(SourceSlow(pipeline=call.pipeline(), seconds=seconds, sentence=SLOW_SENTENCE))

    def _end_turn(self, call: _RunningCall) -> None:
        if call.turn is not None:
            call.turn.cancel()
            call.turn = None
            self._turn.release()

    def _end(self, call: _RunningCall) -> None:
        self._end_turn(call)
        if call.timer is not None:
            call.timer.cancel()
        if call in self._spare:
            self._spare.remove(call)
        else:
            self._free.release()

    async def close(self) -> None:
        """Wait for the end of all running calls, then end the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)


class _RunningCall(msgspec.Struct, eq=False):
    pipeline: Callable[[], str]
    started: float
    timer: asyncio.TimerHandle | None = None
    turn: asyncio.TimerHandle | None = None
    """Ends the time in which no further call starts; None: this time has ended."""
    thread: int = 0
    steps: int = 0
    is_silent: bool = False

    def perform(self, call: Callable[[], T]) -> T:
        """Make the call, in the present thread."""
        self.thread = threading.get_ident()
        self.steps = progress_of(self.thread)
        return call()

    def has_progressed(self) -> bool:
        """Return whether the call has made a step since it began, or since the last call of this method."""
        before, self.steps = self.steps, progress_of(self.thread)
        return self.steps != before
