"""One writer thread whose transactions are shared: work that waits while a commit is on its way is the next group.

A commit costs a flush of the disk, whoever needs it; so concurrent callers pay for one together. Nothing waits for a
timer: a lone piece of work is committed at once. How a group becomes durable is the database's own affair.

What comes within one turn of the loop is handed to the thread in one go: to wake it for each piece would make it and the loop
take the interpreter from each other in turns.
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
from workspaced.storage.port import CommitObserver, Transaction

T = TypeVar("T")
Perform: TypeAlias = Callable[[Sequence[Work]], list[Outcome]]
"""Do all the work, each piece undone alone if it fails; every outcome, in order, once what succeeded is durable."""

# How many callers and how many rows share a commit at the most: enough to hide the flush, little enough that the first
# of them does not wait long for the last.
GROUP_CALLERS = 256
GROUP_ROWS = 20_000


class _Piece(NamedTuple):
    work: Work
    weight: int
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class GroupCommit:
    """The writer of one process. Start it once, stop it once; `stop` first finishes what was handed in."""

    def __init__(
        self,
        perform: Perform,
        *,
        name: str = "writer",
        callers: int = GROUP_CALLERS,
        observer: CommitObserver = lambda _callers, _seconds: None,
    ) -> None:
        """``perform`` and ``observer`` are called on the writer's thread only; ``callers`` share a commit at the most."""
        self._perform = perform
        self._callers = callers
        self._observer = observer
        self._lock = threading.Lock()
        self._gathered: list[_Piece] = []
        self._queue: SimpleQueue[list[_Piece] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopped = False

    def start(self) -> None:
        """Begin to take work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was handed in, then end; returns when the thread has ended."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._queue.put(self._gathered)
                self._gathered = []
                self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """As `workspaced.storage.port.Store.write`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._stopped or not self._thread.is_alive():
                raise UnavailableProblem("stopping", "The service is stopping.")
            if not self._gathered:
                loop.call_soon(self._hand_over)
            self._gathered.append(_Piece(work, weight, answer, loop))
        return cast("T", await answer)

    def _hand_over(self) -> None:
        """What came within this turn of the loop; nothing, where `stop` was quicker."""
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
        """Add what was handed in by now, or wait for it where nothing waits; whether the end was reached."""
        try:
            handed = self._queue.get(block=not waiting)
            while handed is not None:
                waiting.extend(handed)
                handed = self._queue.get_nowait()
        except Empty:
            return False
        return True

    def _group(self, waiting: deque[_Piece]) -> list[_Piece]:
        """The first that waits, and those behind it, up to the bounds."""
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
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the callers; the writer goes on
            outcomes = [(None, error)] * len(group)
        else:
            self._observer(len(group), time.monotonic() - begun)
        _deliver([(piece, *outcome) for piece, outcome in zip(group, outcomes, strict=True)])


def _deliver(outcomes: list[tuple[_Piece, Any, BaseException | None]]) -> None:
    """Hand the results to the callers' loops, one wake-up a loop."""
    loops = {id(piece.loop): piece.loop for piece, _, _ in outcomes}
    for identity, loop in loops.items():
        mine = [outcome for outcome in outcomes if id(outcome[0].loop) == identity]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:  # the loop was closed before its answer came: there is nobody left to tell
            continue


def _settle(outcomes: list[tuple[_Piece, Any, BaseException | None]]) -> None:
    for piece, result, error in outcomes:
        if piece.answer.done():  # the caller went away; the work is done all the same
            continue
        if error is not None:
            piece.answer.set_exception(error)
        else:
            piece.answer.set_result(result)
