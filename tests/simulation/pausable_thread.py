"""Threads that pause at marked points, so that the event loop and other threads can run between two steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """Raised in a paused thread when its process is killed; its remaining work is not done."""


class PausableThread:
    """Runs a call in a thread that executes only between `resume` and the next `pause`, so that runs are repeatable.

    ``result`` and ``error`` are set when the call has ended.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.has_ended = False
        self.result: Any = None
        self.error: Exception | None = None
        self._call = call
        self._killed = False
        self._resumed = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        threading.Thread(target=self._run, name="pausable", daemon=True).start()

    def resume(self) -> bool:
        """Run until the thread pauses or ends; return True if it has ended."""
        self._resumed.release()
        self._paused.acquire()
        return self.has_ended

    def kill(self) -> None:
        """Raise `Killed` where the thread is paused, and wait for its end."""
        self._killed = True
        while not self.resume():
            pass

    def _run(self) -> None:
        self._resumed.acquire()
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
            self._paused.release()

    def pause(self) -> None:
        """Pause; called in the thread."""
        self._paused.release()
        self._resumed.acquire()
        if self._killed:
            raise Killed


_here = threading.local()


def pause() -> None:
    """Let the event loop and other threads run; does nothing outside a `PausableThread`."""
    thread: PausableThread | None = getattr(_here, "thread", None)
    if thread is not None:
        thread.pause()
