"""Runs the blocking calls of all sources in a bounded number of threads, and keeps a source that hangs from blocking others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import SourceSlow

T = TypeVar("T")

THREADS = 8
"""So many sources are called at the same time; more threads would only wait for the interpreter and the state file."""
SPARE_THREADS = 24
"""So many calls may be slow before the others have to wait for them."""
SLOW_SECONDS = 30.0

SLOW_SENTENCE = (
    f"A call of the source has not returned for {SLOW_SECONDS:.0f} seconds. The other sources go on in further threads. If it"
    " does not end by itself, check that the file system or server that the source reads responds."
)


class SourceThreads:
    """Threads for blocking calls. Belongs to one event loop.

    A call that takes longer than ``SLOW_SECONDS`` is reported and no longer counts towards ``THREADS``, so the other sources
    are called in a further thread. Its own thread ends with the call.
    """

    def __init__(self, *, emit: Emit) -> None:
        self._emit = emit
        self._executor = ThreadPoolExecutor(THREADS + SPARE_THREADS, thread_name_prefix="source")
        self._free = asyncio.Semaphore(THREADS)
        self._slow: list[_RunningCall] = []

    async def start(self, pipeline: str, call: Callable[[], T]) -> asyncio.Future[T]:
        """Wait for a free thread and start ``call`` in it; ``pipeline`` names the source in reports.

        The future that is returned ends with the call. Cancelling the caller while it waits starts nothing.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._executor, call)
        except BaseException:
            self._free.release()
            raise
        running = _RunningCall(pipeline, started=loop.time())
        running.timer = loop.call_later(SLOW_SECONDS, self._slow_down, running)
        future.add_done_callback(lambda _: self._end(running))
        return future

    def slow(self) -> list[str]:
        """The pipelines of the calls that have not returned for longer than ``SLOW_SECONDS``. From any thread."""
        return [call.pipeline for call in list(self._slow)]

    def _slow_down(self, call: _RunningCall) -> None:
        loop = asyncio.get_running_loop()
        if len(self._slow) == SPARE_THREADS:
            call.timer = loop.call_later(SLOW_SECONDS, self._slow_down, call)
            return
        self._slow.append(call)
        self._free.release()
        seconds = round(loop.time() - call.started, 1)
        self._emit(SourceSlow(pipeline=call.pipeline, seconds=seconds, sentence=SLOW_SENTENCE))

    def _end(self, call: _RunningCall) -> None:
        if call.timer is not None:
            call.timer.cancel()
        if call in self._slow:
            self._slow.remove(call)
        else:
            self._free.release()

    async def close(self) -> None:
        """Wait for every call that is still running and end the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)


@dataclass(slots=True, eq=False)
class _RunningCall:
    pipeline: str
    started: float
    timer: asyncio.TimerHandle | None = None
