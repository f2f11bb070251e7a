"""One writer thread with shared transactions: work that arrives during a commit becomes the next group.

A commit costs one flush of the disk for any number of callers, so concurrent callers share a commit. No timer delays work: a
single piece is committed at once. Each database implements how a group becomes durable (`Perform`).

All work of one iteration of the event loop is passed to the thread together. If each piece woke the thread, the thread and the
loop would compete for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.batchable import Outcome, Work
from workspaced.storage.port import Transaction

T = TypeVar("T")
Perform: TypeAlias = Callable[[Sequence[Work]], list[Outcome]]
"""A function that does all the work, and undoes only failed work. After the commit, it returns the outcomes in order."""
CommitObserver: TypeAlias = Callable[[int, float], None]
"""Called after each commit with the number of callers, and the seconds from the first statement on. It may be called on any
thread."""

# The largest numbers of callers and rows that share a commit. They are large enough to hide the cost of the flush, and small
# enough that the first caller does not wait long for the last.
GROUP_CALLERS = 256
GROUP_ROWS = 20_000


class _Piece(NamedTuple):
    work: Work
    weight: int
    result: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class GroupCommit:
    """The writer of one process. Start it once, stop it once; `stop` first finishes all accepted work."""

    def __init__(
        self,
        perform: Perform,
        *,
        name: str = "writer",
        callers: int = GROUP_CALLERS,
        observer: CommitObserver = lambda _callers, _seconds: None,
    ) -> None:
        """Call ``perform`` and ``observer`` on the writer's thread only; at most ``callers`` share a commit."""
        self._perform = perform
        self._callers = callers
        self._observer = observer
        self._lock = threading.Lock()
        self._gathered: list[_Piece] = []
        self._queue: SimpleQueue[list[_Piece] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopped = False

    def start(self) -> None:
        """Begin to accept work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish all accepted work; return after the thread has ended."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._queue.put(self._gathered)
                self._gathered = []
                self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """See `workspaced.storage.store.Store.write`."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._stopped or not self._thread.is_alive():
                raise UnavailableProblem("stopping", "The service is stopping.")
            if not self._gathered:
                loop.call_soon(self._hand_over)
            self._gathered.append(_Piece(work, weight, result, loop))
        return cast("T", await result)

    def _hand_over(self) -> None:
        """Pass the work of this iteration of the loop to the thread; `stop` may have done so already."""
        with self._lock:
            if self._gathered:
                self._queue.put(self._gathered)
                self._gathered = []

    def _run(self) -> None:
        waiting: deque[_Piece] = deque()
        ended = False
        while not ended or waiting:
            ended = self._take(waiting) or ended
            if waiting:
                self._commit(self._group(waiting))

    def _take(self, waiting: deque[_Piece]) -> bool:
        """Append all arrived work; if ``waiting`` is empty, block until work arrives. Return whether `stop` was called."""
        try:
            handed = self._queue.get(block=not waiting)
            while handed is not None:
                waiting.extend(handed)
                handed = self._queue.get_nowait()
        except Empty:
            return False
        return True

    def _group(self, waiting: deque[_Piece]) -> list[_Piece]:
        """Remove the next group from the queue: the first piece of work and the following pieces, up to the limits."""
        group = [waiting.popleft()]
        rows = group[0].weight
        while waiting and len(group) < self._callers and rows + waiting[0].weight <= GROUP_ROWS:
            group.append(waiting.popleft())
            rows += group[-1].weight
        return group

    def _commit(self, group: list[_Piece]) -> None:
        begun = time.monotonic()
        try:
            outcomes = self._perform([piece.work for piece in group])
        except Exception as error:  # noqa: BLE001  raised at the callers; the writer continues
            outcomes = [(None, error)] * len(group)
        else:
            self._observer(len(group), time.monotonic() - begun)
        _deliver([(piece, *outcome) for piece, outcome in zip(group, outcomes, strict=True)])


def _deliver(outcomes: list[tuple[_Piece, Any, BaseException | None]]) -> None:
    """Pass the results to the callers' event loops, with one wake-up for each loop."""
    loops = {id(piece.loop): piece.loop for piece, _, _ in outcomes}
    for identity, loop in loops.items():
        mine = [outcome for outcome in outcomes if id(outcome[0].loop) == identity]
        try:
            loop.call_soon_threadsafe(_set_results, mine)
        except RuntimeError:  # the loop was closed: no caller waits for the result
            continue


def _set_results(outcomes: list[tuple[_Piece, Any, BaseException | None]]) -> None:
    for piece, result, error in outcomes:
        if piece.result.done():  # the caller was cancelled; its work is done nevertheless
            continue
        if error is not None:
            piece.result.set_exception(error)
        else:
            piece.result.set_result(result)
