"""Deferred acknowledgements: while the disk is full, they are kept in memory, in order, until there is space again.

So delivery continues while the disk is full. If the process ends before an acknowledgement is written, its entries are still
pending and are sent again. Sending them twice is safe, because every write to the service is idempotent.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ingestd.core.errors import MirrorError, MirrorFull

MAX_KEYS = 2_000_000
"""Maximum number of keys in memory; each acknowledgement counts as one additional key. Above it, `MirrorFull` is raised and the
delivery waits."""

RETRY_SECONDS = 2.0


class DeferredAcknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledgement of ``keys`` keys. ``write`` writes one transaction and releases the claim of ``segments``."""

    write: Callable[[], None]
    segments: Collection[int]
    keys: int = 0


class DeferredAcknowledgements:
    """Writes acknowledgements in order in ``thread``. Call its methods in that thread, except `holds` and `stop`.

    ``on_written`` is called in that thread after a retry has written the deferred acknowledgements.
    """

    def __init__(
        self, thread: ThreadPoolExecutor, *, on_written: Callable[[], None], retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._thread = thread
        self._on_written = on_written
        self._retry_seconds = retry_seconds
        self._waiting: deque[DeferredAcknowledgement] = deque()
        self._segments: Counter[int] = Counter()
        self._keys = 0
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._stopped = False

    def holds(self, segments: Collection[int]) -> bool:
        """Return True if an acknowledgement of one of these segments is deferred."""
        return any(segment in self._segments for segment in segments)

    def write_or_defer(self, acknowledgement: DeferredAcknowledgement) -> None:
        """Write the deferred acknowledgements and then this acknowledgement; on a full disk, defer it.

        Raises:
            MirrorFull: there is no space, and too many keys are deferred already.
            MirrorError: the state file cannot be used.
        """
        try:
            self.write_all()
            acknowledgement.write()
        except MirrorFull:
            if self._keys + acknowledgement.keys + 1 > MAX_KEYS:
                raise
            self._waiting.append(acknowledgement)
            self._segments.update(acknowledgement.segments)
            self._keys += acknowledgement.keys + 1
            self._start_timer()

    def write_all(self) -> None:
        """Write the deferred acknowledgements.

        Raises:
            MirrorFull: there is still no space; the other acknowledgements remain deferred.
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
        """Stop the retries. `write_all` makes a last attempt."""
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
            # The next use of the state file raises the error again and ends the process.
            return
        else:
            self._on_written()
