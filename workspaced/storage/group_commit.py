"""One writer thread whose transactions are shared: work that waits while a commit is on its way is the next group.

A commit costs a flush of the disk, whoever needs it; so concurrent callers pay for one together. Nothing waits for a
timer: a lone piece of work is committed at once. How a group becomes durable is the database's own affair.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar, cast

from workspaced.problems import Unavailable
from workspaced.storage.port import Transaction, Witness

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], Any]
Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a piece of work returned, or what it raised."""

Perform: TypeAlias = Callable[[Sequence[Work]], list[Outcome]]
"""Do all the work, each piece undone alone if it fails; every outcome, in order, once what succeeded is durable."""

# How many callers and how many rows share a commit at the most: enough to hide the flush, little enough that the first
# of them does not wait long for the last.
GROUP_CALLERS = 256
GROUP_ROWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
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
        witness: Witness = lambda _callers, _seconds: None,
    ) -> None:
        """``perform`` and ``witness`` are called on the writer's thread only; ``callers`` share a commit at the most."""
        self._perform = perform
        self._callers = callers
        self._witness = witness
        self._queue: SimpleQueue[_Piece | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopped = False

    def start(self) -> None:
        """Begin to take work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was handed in, then end; returns when the thread has ended."""
        if not self._stopped:
            self._stopped = True
            self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """As `workspaced.storage.port.Store.write`."""
        if self._stopped or not self._thread.is_alive():
            raise Unavailable("stopping", "The service is stopping.")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_Piece(work=work, weight=weight, answer=answer, loop=loop))
        return cast("T", await answer)

    def _run(self) -> None:
        waiting: _Piece | None = None
        while True:
            first = waiting or self._queue.get()
            if first is None:
                return
            group, waiting, ended = self._gather(first)
            self._commit(group)
            if ended:
                return

    def _gather(self, first: _Piece) -> tuple[list[_Piece], _Piece | None, bool]:
        """What is waiting now, up to the bounds; the piece that no longer fitted; whether the end was reached."""
        group = [first]
        rows = first.weight
        while len(group) < self._callers:
            try:
                piece = self._queue.get_nowait()
            except Empty:
                return group, None, False
            if piece is None:
                return group, None, True
            if rows + piece.weight > GROUP_ROWS:
                return group, piece, False
            rows += piece.weight
            group.append(piece)
        return group, None, False

    def _commit(self, group: list[_Piece]) -> None:
        begun = time.monotonic()
        try:
            outcomes = self._perform([piece.work for piece in group])
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the callers; the writer goes on
            outcomes = [(None, error)] * len(group)
        else:
            self._witness(len(group), time.monotonic() - begun)
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
