"""The lock of the write connection, granted in the order of the requests."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class WriteLock:
    """A fair lock: threads get it in the order of their requests. Not reentrant.

    Long work is split into short transactions so that other threads can commit between them. An ordinary lock usually goes back
    to the thread that has just released it, so other threads would wait for the whole work.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """The number of waiting threads."""
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
        """Leave the queue after an interrupted wait, or release the lock if it was granted meanwhile."""
        with self._mutex:
            queued = gate in self._waiting
            if queued:
                self._waiting.remove(gate)
        if not queued:
            self._release()
