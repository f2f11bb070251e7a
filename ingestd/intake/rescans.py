"""Passes over sources at rest: all passes that are due at the same time are made in one call of a thread.

This saves time: resuming a task and calling a thread takes several times as long as a pass over an unchanged folder.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from ingestd.intake.thread_pool import FAST_SECONDS, SourceThreads

T = TypeVar("T")


class RestingSource(Protocol[T]):
    """A source that is read again at a given time, without another reason."""

    @property
    def pipeline(self) -> str:
        """The name of its pipeline."""

    async def begin_rescan(self, at: float) -> bool:
        """Return True if the pass due at ``at`` may be made now; then no call begins before `end_rescan`. Does not wait."""

    def make_pass(self) -> T:
        """Make the pass. Blocks."""

    def end_rescan(self, outcome: Future[T] | None) -> None:
        """Take the result or exception of the pass; None: it was not made."""


class Rescans(Generic[T]):
    """Makes passes when they are due. Belongs to one event loop.

    A source that hangs delays no other source: a further thread continues with the remaining sources.
    """

    def __init__(self, threads: SourceThreads) -> None:
        self._threads = threads
        self._due: dict[float, list[RestingSource[T]]] = {}
        self._begun: asyncio.Queue[float] = asyncio.Queue()

    def add(self, source: RestingSource[T], at: float) -> None:
        """Make a pass at the loop time ``at``, unless the source's `begin_rescan` then returns False."""
        if at not in self._due:
            self._due[at] = []
            asyncio.get_running_loop().call_at(at, self._begun.put_nowait, at)
        self._due[at].append(source)

    async def run(self) -> None:
        """Make the passes until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                at = await self._begun.get()
                group.create_task(self._read(self._due.pop(at), at), name="rescans")

    async def _read(self, sources: list[RestingSource[T]], at: float) -> None:
        left: deque[RestingSource[T]] = deque()
        try:
            for source in sources:
                if await source.begin_rescan(at):
                    left.append(source)
            while left:
                batch = _Batch(left)
                future = await self._threads.start(batch.pipeline, batch.read)
                future.add_done_callback(batch.deliver)
                known = -1
                while not future.done() and batch.count != known:  # without progress, a further thread continues
                    known = batch.count
                    await asyncio.wait([future], timeout=FAST_SECONDS)
                    batch.deliver()
        finally:
            with suppress(IndexError):  # a thread may still take passes, too
                while True:
                    left.popleft().end_rescan(None)


class _Batch(Generic[T]):
    """Passes one after the other.

    ``left``: the sources still to read, shared with the batch of a further thread. ``count``: the number of passes that ended.
    """

    def __init__(self, left: deque[RestingSource[T]]) -> None:
        self._left = left
        self._present: RestingSource[T] | None = None
        self._ended: deque[tuple[RestingSource[T], Future[T]]] = deque()
        self.count = 0

    def pipeline(self) -> str:
        """Return the pipeline of the present pass."""
        return self._present.pipeline if self._present is not None else ""

    def read(self) -> None:
        """Make the remaining passes. Blocks."""
        while True:
            try:
                source = self._left.popleft()
            except IndexError:
                return
            self._present = source
            self._ended.append((source, _outcome(source.make_pass)))
            self.count += 1

    def deliver(self, _done: object = None) -> None:
        """Report each pass that ended to its source. Belongs to the event loop."""
        while self._ended:
            source, outcome = self._ended.popleft()
            source.end_rescan(outcome)


def _outcome(call: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()
    try:
        outcome.set_result(call())
    except BaseException as error:  # noqa: BLE001 - the source's own task raises it
        outcome.set_exception(error)
    return outcome
