"""Settlements that the state file has no room for: kept in memory, in order, and written when there is room again.

So delivery goes on while the disk is full. What is kept here is lost with the process; then its entries are still pending,
and are sent again: each write to the service may be repeated.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ingestd.core.errors import MirrorError, MirrorFull

MAX_KEYS = 2_000_000
"""Beyond so many keys, or claims of one key each, settling raises `MirrorFull` and delivery has to wait, too."""

RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredSettlement:
    """``write`` writes one transaction and gives the claim back. ``segments``: those it is about. ``keys``: how many it holds."""

    write: Callable[[], None]
    segments: Collection[int]
    keys: int = 0


class DeferredSettlements:
    """Writes settlements in order in ``thread``; its methods run there, except `holds`, `start` and `stop`.

    ``on_written`` is called, in that thread, when what was deferred has been written without a further call.
    """

    def __init__(
        self, thread: ThreadPoolExecutor, *, on_written: Callable[[], None], retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._thread = thread
        self._on_written = on_written
        self._retry_seconds = retry_seconds
        self._waiting: deque[DeferredSettlement] = deque()
        self._segments: Counter[int] = Counter()
        self._keys = 0
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._stopped = False

    def holds(self, segments: Collection[int]) -> bool:
        """Return True if a settlement of one of these segments waits."""
        return any(segment in self._segments for segment in segments)

    def settle(self, settlement: DeferredSettlement) -> None:
        """Write a settlement after those that wait, or keep it with them.

        Raises:
            MirrorFull: there is no room, and too many wait already.
            MirrorError: the state file cannot be used.
        """
        try:
            self.write_all()
            settlement.write()
        except MirrorFull:
            if self._keys + settlement.keys + 1 > MAX_KEYS:
                raise
            self._waiting.append(settlement)
            self._segments.update(settlement.segments)
            self._keys += settlement.keys + 1
            self._start_timer()

    def write_all(self) -> None:
        """Write what waits.

        Raises:
            MirrorFull: there is still no room; the rest waits on.
            MirrorError: the state file cannot be used.
        """
        while self._waiting:
            first = self._waiting[0]
            first.write()
            self._waiting.popleft()
            self._segments.subtract(first.segments)
            self._segments = +self._segments
            self._keys -= first.keys + 1

    def stop(self) -> None:
        """Try no more by itself; a last try is `write_all`."""
        with self._guard:
            self._stopped = True
            if self._timer is not None:
                self._timer.cancel()

    def _start_timer(self) -> None:
        with self._guard:
            if self._stopped or self._timer is not None:
                return
            self._timer = threading.Timer(self._retry_seconds, self._due)
            self._timer.daemon = True
            self._timer.start()

    def _due(self) -> None:
        with self._guard:
            self._timer = None
            if not self._stopped:
                self._thread.submit(self._retry)

    def _retry(self) -> None:
        if not self._waiting:
            return
        try:
            self.write_all()
        except MirrorFull:
            self._start_timer()
        except MirrorError:
            # Whatever uses the file next raises it, where it ends the process.
            return
        else:
            self._on_written()
