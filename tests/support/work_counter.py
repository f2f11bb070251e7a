"""Counts the work of a program instead of its time: SQLite VM steps, statements, instructions, bytes written, requests.

A `Work` collects counts by name. `counting(work)` makes a connection factory for SQLite. `CountingTransport` counts between an
HTTP client and its transport. `bytes_written` reads a count of the kernel. `Growth` compares the counts of a case at two sizes:

    growth = Growth()
    for rows in (1_000, 4_000):
        with growth.at(rows) as work:
            ...  # the case, which counts into `work`
    growth.check()

Counts do not depend on the speed of the machine, so a test of growth has a fixed limit and never fails at random.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

RATIO = 4.6
"""The maximum growth of work if a case becomes four times as large. It permits linear growth with a logarithm for trees."""

PEAK_RATIO = 1.5
"""The maximum growth of a peak. Peaks are bounded, but deeper trees cost a little more."""

STEPS_COUNTED = "sqlite steps"
LONGEST_WRITE = "sqlite steps of one transaction"

STEPS = 20
"""VM steps between two calls of SQLite's progress handler. This is the precision of the count of a statement."""


class Work:
    """Counts by name, from any thread, except inside `uncounted`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._peaks: dict[str, int] = {}
        self._counting = True

    def add(self, name: str, count: int = 1) -> None:
        """Add to a count."""
        if self._counting:
            with self._lock:
                self._counts[name] += count

    def counts(self) -> dict[str, int]:
        """Return all counts."""
        with self._lock:
            return dict(self._counts)

    def peak(self, name: str, value: int) -> None:
        """Record a value; the largest value of each name is kept."""
        if self._counting:
            with self._lock:
                self._peaks[name] = max(value, self._peaks.get(name, 0))

    def reset(self) -> None:
        """Reset all counts and peaks."""
        with self._lock:
            self._counts.clear()
            self._peaks.clear()

    def peaks(self) -> dict[str, int]:
        """Return the largest value of each name."""
        with self._lock:
            return dict(self._peaks)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Count nothing inside the block, for example while a case is prepared."""
        with self._set(counting=False):
            yield

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count inside the block, also within an `uncounted` block."""
        with self._set(counting=True):
            yield

    @contextmanager
    def _set(self, *, counting: bool) -> Iterator[None]:
        before, self._counting = self._counting, counting
        try:
            yield
        finally:
            self._counting = before


class CountingConnection(sqlite3.Connection):
    """Counts the cost of its statements: ``sqlite steps`` and ``sqlite statements``. `counting` makes the class.

    The steps of the longest write transaction are a peak, because other writers wait for it.
    """

    work: Work
    _steps = 0
    _began: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.set_progress_handler(self._progress, STEPS)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.work.add("sqlite statements")
        # These tests need no durability, and the cost of a commit is counted in bytes.
        cursor = super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters)
        if sql == "BEGIN IMMEDIATE":
            self._began = self._steps
        elif sql == "COMMIT" and self._began is not None:
            self.work.peak(LONGEST_WRITE, self._steps - self._began)
            self._began = None
        return cursor

    def executemany(self, sql: str, rows: Iterable[Any]) -> sqlite3.Cursor:
        def counted() -> Iterator[Any]:
            for row in rows:
                self.work.add("sqlite statements")
                yield row

        return super().executemany(sql, counted())

    def _progress(self) -> int:
        self._steps += STEPS
        self.work.add(STEPS_COUNTED, STEPS)
        return 0


def counting(work: Work) -> type[CountingConnection]:
    """Return a factory of SQLite connections that count into ``work``."""
    return type("Counting", (CountingConnection,), {"work": work})


@contextmanager
def counting_connections(work: Work | None = None) -> Iterator[Work]:
    """Count the work of all SQLite connections that are opened within the block, by any caller."""
    work = work or Work()
    opened, factory = sqlite3.connect, counting(work)

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = opened(*args, **{**kwargs, "factory": factory})
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield work


@contextmanager
def counting_instructions(work: Work) -> Iterator[None]:
    """Count the byte-code instructions within the block, of this thread and of the threads that begin in the block."""
    executed = count()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            next(executed)
        return trace

    before, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(of_threads)
        work.add("instructions", next(executed))


@dataclass(slots=True)
class CountingTransport(httpx.AsyncBaseTransport):
    """Passes requests to ``inner``; counts ``requests``, ``bytes sent`` and ``bytes received``."""

    inner: httpx.AsyncBaseTransport
    work: Work

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.work.add("requests")
        self.work.add("bytes sent", len(await request.aread()))
        response = await self.inner.handle_async_request(request)
        self.work.add("bytes received", len(await response.aread()))
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


def bytes_written() -> int:
    """Return the bytes that this process has written to files and sockets since its start."""
    for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines():
        name, _, number = line.partition(": ")
        if name == "wchar":
            return int(number)
    raise LookupError("/proc/self/io has no wchar")


@dataclass(slots=True)
class Growth:
    """The work of a case at two sizes. The second size is four times the first."""

    _found: dict[int, Work] = field(default_factory=dict)

    @contextmanager
    def at(self, size: int) -> Iterator[Work]:
        """Count the work of the case at a size."""
        work = Work()
        yield work
        self._found[size] = work

    def check(self) -> None:
        """Compare all counts.

        Raises:
            AssertionError: a count grew by more than `RATIO`; the message has its name and both values.
        """
        small, large = self._sizes()
        self._compare(self._found[small].counts(), self._found[large].counts(), RATIO)

    def check_peaks(self) -> None:
        """Compare all peaks.

        Raises:
            AssertionError: a peak grew by more than `PEAK_RATIO`; the message has its name and both values.
        """
        small, large = self._sizes()
        self._compare(self._found[small].peaks(), self._found[large].peaks(), PEAK_RATIO)

    def _sizes(self) -> tuple[int, int]:
        small, large = sorted(self._found)
        if large != 4 * small:
            raise AssertionError(f"sizes {small} and {large} are not as one to four")
        return small, large

    def _compare(self, before: Mapping[str, int], after: Mapping[str, int], ratio: float) -> None:
        if not any(after.values()):
            raise AssertionError("the case did no work that was counted")
        grown = [
            f"{name}: from {before.get(name, 0)} to {count} (by {count / max(before.get(name, 0), 1):.2f})"
            for name, count in sorted(after.items())
            if count > ratio * before.get(name, 0)
        ]
        if grown:
            raise AssertionError(f"work grew by more than {ratio}: {'; '.join(grown)}")
