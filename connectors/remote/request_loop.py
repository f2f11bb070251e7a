"""An event loop in its own thread, which runs requests of other threads. Connections stay open between the requests."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ingestd.sdk import SourceUnavailable
from ingestd.sdk.streams import LoopThread

T = TypeVar("T")


class RequestLoop:
    """Runs coroutines for callers in other threads, and can interrupt them. Its thread starts with the first coroutine.

    ``ignored``: errors of background tasks that are not logged, such as a lost connection, because each request reports them.
    """

    def __init__(self, name: str, ignored: tuple[type[BaseException], ...] = ()) -> None:
        self._name = name
        self._ignored = ignored
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._interrupted = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that ``work`` makes, and return its result; raise `SourceUnavailable` after `interrupt`."""
        try:
            return self._started(work).result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError):  # two different classes
            raise SourceUnavailable("The reading was interrupted, because the source is closed.") from None

    def _started(self, work: Callable[[], Coroutine[Any, Any, T]]) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._interrupted:
                raise asyncio.CancelledError
            if self._thread is None:
                self._thread = LoopThread(self._name)
            return self._thread.start(self._tracked(work))

    async def _tracked(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        asyncio.get_running_loop().set_exception_handler(self._report)
        task = asyncio.current_task()
        if self._interrupted or task is None:
            raise asyncio.CancelledError
        self._running.add(task)
        try:
            return await work()
        finally:
            self._running.discard(task)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), self._ignored):
            loop.default_exception_handler(context)

    def interrupt(self, abort: Callable[[], None] = lambda: None) -> None:
        """Call ``abort`` in the loop's thread, and cancel running requests. Later requests fail at once, until `allow`."""
        with self._lock:
            self._interrupted = True
            if self._thread is not None:
                self._thread.start(self._cancel(abort))

    def allow(self) -> None:
        """Permit requests again after `interrupt`."""
        self._interrupted = False

    async def _cancel(self, abort: Callable[[], None] = lambda: None) -> None:
        try:
            abort()
        finally:
            for task in list(self._running):
                task.cancel()

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Run ``last`` and end the thread. A later `run` starts a new thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            if last is not None:
                last.close()
            return
        thread.start(self._cancel())
        try:
            if last is not None:
                thread.start(last).result()
        finally:
            thread.close()
