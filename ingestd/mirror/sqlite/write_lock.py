"""The lock around the one writing connection: handed over in the order in which threads asked for it."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class WriteLock:
    """A lock that serves waiting threads first come, first served; not reentrant.

    Long work is split into many short transactions so that others commit between them. With an ordinary lock the thread that
    has just released it usually gets it back at once, and the others would wait for the whole work all the same.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait for the lock."""
        with self._mutex:
            return len(self._waiting)

    def __enter__(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        try:
            gate.acquire()
        except BaseException:
            self._give_up(gate)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False

    def _give_up(self, gate: threading.Lock) -> None:
        """The wait was interrupted: leave the queue, or pass the lock on if it was handed over meanwhile."""
        with self._mutex:
            queued = gate in self._waiting
            if queued:
                self._waiting.remove(gate)
        if not queued:
            self._release()
