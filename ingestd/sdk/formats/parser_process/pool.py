"""The pool of parser processes that all connectors share.

A process starts on demand and ends after some time without work.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator

from ingestd.sdk import SourceUnavailable
from ingestd.sdk.formats.parser_process.messages import ParseOrder, ParserLimits
from ingestd.sdk.formats.parser_process.process import ParserProcess
from ingestd.sdk.formats.record_chunk import RecordChunk


class ParserPool:
    """Up to ``limits.processes`` processes. Thread-safe."""

    def __init__(self, limits: ParserLimits | None = None) -> None:
        self.limits = limits or ParserLimits()
        self._changed = threading.Condition()
        self._idle: list[tuple[float, ParserProcess]] = []
        self._busy: set[ParserProcess] = set()
        self._starting = 0
        self._timer: threading.Timer | None = None

    def processes(self) -> tuple[int, ...]:
        """Return the ids of all processes, busy and idle."""
        with self._changed:
            return tuple(process.pid for process in (*self._busy, *(process for _, process in self._idle)))

    def acquire(self, client: Parsers) -> ParserProcess:
        """Return an idle process or a new one; wait while all processes are busy.

        Raises:
            SourceUnavailable: the client was interrupted, or the process can't be started.
        """
        with self._changed:
            self._changed.wait_for(lambda: client.is_interrupted or self._idle or self._has_room())
            client.check()
            if self._idle:
                _, process = self._idle.pop()
                self._busy.add(process)
                return process
            self._starting += 1
        try:
            process = ParserProcess(self.limits)
            with self._changed:
                self._busy.add(process)
        finally:
            with self._changed:
                self._starting -= 1
        return process

    def release(self, process: ParserProcess) -> None:
        """Keep the process if it can parse another file; else end it."""
        if not process.is_reusable:
            process.end()
        with self._changed:
            self._busy.discard(process)
            if process.is_reusable:
                self._idle.append((time.monotonic(), process))
                self._start_timer()
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake every waiting call of `acquire`, which then checks its condition again."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End all idle processes."""
        self._end_idle(before=float("inf"))

    def _has_room(self) -> bool:
        return len(self._busy) + len(self._idle) + self._starting < self.limits.processes

    def _start_timer(self) -> None:
        if self._timer is None and self._idle:
            due = self._idle[0][0] + self.limits.idle_seconds
            self._timer = threading.Timer(max(0.0, due - time.monotonic()), self._on_timer)
            self._timer.daemon = True
            self._timer.start()

    def _on_timer(self) -> None:
        with self._changed:
            self._timer = None
        self._end_idle(before=time.monotonic() - self.limits.idle_seconds)

    def _end_idle(self, before: float) -> None:
        with self._changed:
            over = [process for since, process in self._idle if since <= before]
            self._idle = [(since, process) for since, process in self._idle if since > before]
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._start_timer()
            self._changed.notify_all()
        for process in over:
            process.end()


SHARED = ParserPool()
atexit.register(SHARED.close)


class Parsers:
    """A connector's access to the pool. Only one thread at a time may call `parse`; any thread may call `interrupt`."""

    def __init__(self, pool: ParserPool = SHARED) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._held: set[ParserProcess] = set()
        self.is_interrupted = False

    def parse(self, order: ParseOrder, descriptor: int) -> Iterator[RecordChunk]:
        """Parse a file in a process that no other reading uses meanwhile; see `ParserProcess.parse`.

        Raises:
            SourceUnavailable: the reading was interrupted, or the process can't be started.
            SourceBroken: the file can't be read.
        """
        process = self._pool.acquire(self)
        try:
            with self._lock:
                self._held.add(process)
            self.check()
            try:
                yield from process.parse(order, descriptor)
            except Exception:
                self.check()  # if an interruption ended the process, the file is not the cause
                raise
        finally:
            with self._lock:
                self._held.discard(process)
            self._pool.release(process)

    def check(self) -> None:
        """Check that there was no interruption.

        Raises:
            SourceUnavailable: the reading was interrupted.
        """
        if self.is_interrupted:
            raise SourceUnavailable(
                "The reading was stopped before the file's end; it is read again after the next start."
            )

    def interrupt(self) -> None:
        """End all parsing permanently: every reading, also a later one, raises `SourceUnavailable`."""
        self.is_interrupted = True
        with self._lock:
            for process in self._held:
                process.kill()
        self._pool.wake()


DEFAULT = Parsers()
"""The access for readings that are never interrupted."""
