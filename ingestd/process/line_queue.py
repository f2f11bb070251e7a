"""A handler of `logging` that never blocks the code that logs, and never raises in it.

The disk of a log may be full, and the program that reads the log from a pipe may have ended or stopped reading. So records pass
through a queue of limited size to a separate thread. A record that cannot be queued or written is dropped and counted.
"""

from __future__ import annotations

import logging
import os
import queue
import select
from collections.abc import Callable
from logging.handlers import QueueHandler, QueueListener

MAX_QUEUED = 10_000
"""The maximum number of records that wait for a slow reader; further records are dropped."""

Report = Callable[[int, str], str]
"""Returns the line that reports how many records were dropped, and why."""


class LineQueue(QueueHandler):
    """Writes records to ``descriptor``, each as a line; the descriptor stays open.

    ``report`` returns the line about dropped records, which is written before the next line; None: no line is written.
    """

    def __init__(self, descriptor: int, *, report: Report | None = None, max_queued: int = MAX_QUEUED) -> None:
        self._records: queue.Queue[logging.LogRecord] = queue.Queue(max_queued)
        super().__init__(self._records)
        self._unqueued = 0
        self._writer = _DescriptorWriter(self._records, descriptor, report, lambda: self.dropped)
        self._writer.start()

    @property
    def dropped(self) -> int:
        """The number of records dropped so far."""
        return self._unqueued + self._writer.failed

    def write(self, line: str) -> None:
        """Write a line without a formatter; it may end with a line break."""
        record = logging.makeLogRecord({"msg": line.removesuffix("\n")})
        self.acquire()
        try:
            self.enqueue(record)
        finally:
            self.release()

    def enqueue(self, record: logging.LogRecord) -> None:
        """See `QueueHandler.enqueue`. The lock of the handler is held."""
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._unqueued += 1

    def drain(self, seconds: float | None) -> bool:
        """Wait until every queued record was written or dropped; return False if that takes longer than ``seconds``."""
        with self._records.all_tasks_done:
            return self._records.all_tasks_done.wait_for(lambda: not self._records.unfinished_tasks, seconds)

    def finish(self, seconds: float | None) -> bool:
        """Call `drain`, and end the thread if no record waits. Call this method when nothing logs to this handler any more."""
        drained = self.drain(seconds)
        if drained:
            self._writer.stop()
        return drained


class _DescriptorWriter(QueueListener):
    """Writes lines to a descriptor without a buffer, so that an error concerns one line.

    This class is no `logging.Handler`, because the end of the process waits for the lock of every handler.
    """

    def __init__(
        self,
        records: queue.Queue[logging.LogRecord],
        descriptor: int,
        report: Report | None,
        dropped: Callable[[], int],
    ) -> None:
        super().__init__(records)
        self._descriptor = descriptor
        self._report = report
        self._dropped = dropped
        self._reported = 0
        self._reason = ""
        self._is_torn = False
        self.failed = 0

    def handle(self, record: logging.LogRecord) -> None:
        """Write a record as a line, or count it as failed."""
        count = self._dropped() - self._reported
        if count and self._report:
            report = self._report(count, self._reason or "the reader of the log does not keep up")
            self._reported += 0 if self._write(report) else count
        self._reason = self._write(record.getMessage())
        self.failed += bool(self._reason)

    def _write(self, line: str) -> str:
        """Write a line, and wait for a slow reader; return why the write failed, or an empty text."""
        data = f"{line}\n".encode(errors="backslashreplace")
        # If the last failure left a part of a line, this line must not continue it.
        rest = memoryview(b"\n" + data if self._is_torn else data)
        whole = len(rest)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._descriptor, select.POLLOUT)
                writable.poll()
            except OSError as error:
                self._is_torn = self._is_torn or len(rest) < whole
                return error.strerror or str(error)
        self._is_torn = False
        return ""
