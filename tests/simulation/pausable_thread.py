"""Threads that pause at marked points, so that the event loop and other threads can run between two steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """Raised in a paused thread when its process is killed; its remaining work is not done."""


class PausableThread:
    """Runs a call in a thread that executes only between `resume` and the next `pause`, so that runs are repeatable.

    ``result`` and ``error`` are set when the call has ended. The thread is used again after that.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.has_ended = False
        self.result: Any = None
        self.error: Exception | None = None
        self._call = call
        self._killed = False
        self._worker = _idle.pop() if _idle else _Worker()

    def resume(self) -> bool:
        """Run until the thread pauses or ends; return True if it has ended."""
        self._worker.call = self.run
        self._worker.resumed.release()
        self._worker.paused.acquire()
        if self.has_ended:
            _idle.append(self._worker)
        return self.has_ended

    def kill(self) -> None:
        """Raise `Killed` where the thread is paused, and wait for its end."""
        self._killed = True
        while not self.resume():
            pass

    def run(self) -> None:
        """Execute the call; called in the thread."""
        _here.thread = self
        try:
            if not self._killed:
                self.result = self._call()
        except Exception as error:  # noqa: BLE001 - the caller that awaits the result handles it
            self.error = error
        except Killed:
            self.error = None
        finally:
            self.has_ended = True
            _here.thread = None

    def pause(self) -> None:
        """Pause; called in the thread."""
        self._worker.paused.release()
        self._worker.resumed.acquire()
        if self._killed:
            raise Killed


class _Worker:
    """A thread that runs one call after the other. Both locks are held, except while the other side may run."""

    def __init__(self) -> None:
        self.call: Callable[[], None] = lambda: None
        self.resumed, self.paused = threading.Lock(), threading.Lock()
        self.resumed.acquire()
        self.paused.acquire()
        threading.Thread(target=self._run, name="pausable", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.resumed.acquire()
            self.call()
            self.paused.release()


_here = threading.local()
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # a fork has no thread of its parent


def pause() -> None:
    """Let the event loop and other threads run; does nothing outside a `PausableThread`."""
    thread: PausableThread | None = getattr(_here, "thread", None)
    if thread is not None:
        thread.pause()
