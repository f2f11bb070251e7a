"""Writes lines to a file descriptor without ever blocking, or failing, the code that has something to write.

The disk behind a log may be full, the program behind a pipe may have ended or stopped reading. Lines therefore pass through a
bounded queue to a thread of their own. A line that cannot be queued or written is dropped and counted. As soon as a line
can be written again, a line that reports the count is written before it.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

MAX_QUEUED_BYTES = 4 << 20
"""Lines wait for a slow reader up to this size; further ones are dropped."""

_WRITE_BYTES = 4096  # PIPE_BUF of Linux: processes that share a pipe do not mix such writes
_RETRY_SECONDS = 5.0

Report = Callable[[int, str], str]
"""Returns the line that reports how many lines were dropped, and why."""


class LineWriter:
    """A queue of lines and the thread that writes them to ``descriptor``; the descriptor stays open. Thread-safe.

    ``report`` makes the line that reports dropped lines; None: they are only counted.
    """

    def __init__(
        self, descriptor: int, *, report: Report | None = None, max_queued_bytes: int = MAX_QUEUED_BYTES
    ) -> None:
        self._descriptor = descriptor
        self._report = report
        self._max_queued_bytes = max_queued_bytes
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._in_writing = 0
        self._dropped = 0
        self._unreported = 0
        self._reason = ""
        self._torn = False
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        """The number of lines dropped so far."""
        return self._dropped

    def write(self, text: str) -> int:
        """Queue whole lines, each with its line end, or drop them; return the number of characters taken."""
        data = text.encode(errors="backslashreplace")
        with self._changed:
            if self._closed or self._queued_bytes + len(data) > self._max_queued_bytes:
                self._drop(data.count(b"\n"), "the reader of the log does not keep up")
                return len(text)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
                self._thread.start()
            self._lines.append(data)
            self._queued_bytes += len(data)
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Do nothing: the thread writes as soon as it can. Exists because loggers call it after each line."""

    def drain(self, seconds: float | None) -> bool:
        """Wait until everything queued was written or dropped; return False if that takes longer than ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._in_writing, seconds)

    def close(self, seconds: float | None) -> bool:
        """Take no more lines and `drain`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        return self.drain(seconds)

    def _drop(self, lines: int, reason: str) -> None:
        self._dropped += lines
        self._unreported += lines
        self._reason = reason

    # ------------------------------------------------------------------------------------------ in the writing thread

    def _run(self) -> None:
        while True:
            with self._changed:
                # While lines are unreported the thread tries again by itself: no further line may ever come.
                retry = _RETRY_SECONDS if self._unreported and self._report else None
                self._changed.wait_for(lambda: bool(self._lines) or self._closed, retry)
                if self._closed and not self._lines:
                    return
                lines = self._take()
            self._report_dropped()
            if lines:
                self._write_counted(b"".join(lines))
            with self._changed:
                self._in_writing = 0
                self._changed.notify_all()

    def _take(self) -> list[bytes]:
        """The next lines, as many as other processes' lines do not get mixed with; at least one."""
        taken: list[bytes] = []
        size = 0
        while self._lines and (not taken or size + len(self._lines[0]) <= _WRITE_BYTES):
            taken.append(self._lines.popleft())
            size += len(taken[-1])
        self._queued_bytes -= size
        self._in_writing = len(taken)
        return taken

    def _report_dropped(self) -> None:
        with self._changed:
            count, reason = self._unreported, self._reason
            self._unreported = 0
        if not count or self._report is None:
            return
        if self._write(self._report(count, reason).encode(errors="backslashreplace")):
            with self._changed:
                self._unreported += count

    def _write_counted(self, data: bytes) -> None:
        if reason := self._write(data):
            with self._changed:
                self._drop(data.count(b"\n"), reason)

    def _write(self, data: bytes) -> str:
        """Write all of ``data``, waiting for a reader that is slow; return why that failed, or nothing."""
        # What the last failure left of a line must not become the beginning of this one.
        rest = memoryview(b"\n" + data if self._torn else data)
        whole = len(rest)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._descriptor, select.POLLOUT)
                writable.poll()
            except OSError as error:
                self._torn = self._torn or len(rest) < whole
                return error.strerror or str(error)
        self._torn = False
        return ""
