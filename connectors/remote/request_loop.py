"""An event loop in a thread of its own, for connections that stay open between calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ingestd.sdk import SourceUnavailable

T = TypeVar("T")


class RequestLoop:
    """Runs coroutines for callers of other threads, which can be interrupted. The thread starts with the first one.

    ``ignored``: errors of background tasks that every request reports, too, such as that of a lost connection.
    """

    def __init__(self, name: str, ignored: tuple[type[BaseException], ...] = ()) -> None:
        self._name = name
        self._ignored = ignored
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._interrupted = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that ``work`` makes, and return its result.

        Raises:
            SourceUnavailable: the daemon stops.
        """
        try:
            loop = self._started()
            return asyncio.run_coroutine_threadsafe(self._tracked(work), loop).result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError):  # two classes
            raise SourceUnavailable("The reading was interrupted, because the source is closed.") from None

    async def _tracked(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.current_task()
        if self._interrupted or task is None:
            raise asyncio.CancelledError
        self._running.add(task)
        try:
            return await work()
        finally:
            self._running.discard(task)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._interrupted:
                raise asyncio.CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(self._report)
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), self._ignored):
            loop.default_exception_handler(context)

    def interrupt(self, abort: Callable[[], None] = lambda: None) -> None:
        """Call ``abort`` in the thread and cancel what runs; everything later ends at once, until `allow`."""
        with self._lock:
            self._interrupted = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(abort)
                self._loop.call_soon_threadsafe(self._cancel)

    def allow(self) -> None:
        """End the effect of `interrupt`."""
        with self._lock:
            self._interrupted = False

    def _cancel(self) -> None:
        for task in list(self._running):
            task.cancel()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``last`` and end the thread. A later `run` starts another one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(self._cancel)
        try:
            asyncio.run_coroutine_threadsafe(last(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
