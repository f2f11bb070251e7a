"""Threads that pause: work that the event loop can overtake at marked places, one step of the process at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """The process of a paused thread was killed; nothing that it would have done is done."""


class BatonThread:
    """Runs a call in a thread that has the turn only between `resume` and the next `pause`, so that runs can be repeated.

    ``result`` and ``error`` are those of the call, once it has ended.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.has_ended = False
        self.result: Any = None
        self.error: Exception | None = None
        self._call = call
        self._killed = False
        self._turn = threading.Semaphore(0)
        self._handed_back = threading.Semaphore(0)
        threading.Thread(target=self._run, name="baton", daemon=True).start()

    def resume(self) -> bool:
        """Let it run until it pauses or ends; return True if it has ended."""
        self._turn.release()
        self._handed_back.acquire()
        return self.has_ended

    def kill(self) -> None:
        """Unwind it from where it paused."""
        self._killed = True
        while not self.resume():
            pass

    def _run(self) -> None:
        self._turn.acquire()
        _here.thread = self
        try:
            if not self._killed:
                self.result = self._call()
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the result
            self.error = error
        except Killed:
            self.error = None
        finally:
            self.has_ended = True
            self._handed_back.release()

    def hand_back(self) -> None:
        """Pause; called in the thread."""
        self._handed_back.release()
        self._turn.acquire()
        if self._killed:
            raise Killed


_here = threading.local()


def pause() -> None:
    """Let the event loop and other threads go on before this one does; without effect outside a `BatonThread`."""
    thread: BatonThread | None = getattr(_here, "thread", None)
    if thread is not None:
        thread.hand_back()
