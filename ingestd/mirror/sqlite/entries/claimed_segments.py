"""The segments in open claims, shared by the delivery, which claims them, and the writers of entries."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ClaimedSegments:
    """The ids of the segments in open claims; in memory only, so after a crash claimed entries are pending again. Thread-safe.

    A transaction that takes entries from a segment looks at the claims of that moment. They decide whether the former value may
    have been sent, and for which segments the new value waits. A batch takes longer and may change an entry again. So a segment
    that is not claimed when a batch takes entries from it can't be claimed before the commit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: set[int] = set()
        self._kept: set[int] | None = None

    def __iter__(self) -> Iterator[int]:
        with self._lock:
            return iter(list(self._claimed))

    def __contains__(self, segment: object) -> bool:
        return segment in self._claimed

    def __len__(self) -> int:
        return len(self._claimed)

    def claim(self, segment: int) -> bool:
        """Claim a segment; return False if a batch takes entries from it now."""
        with self._lock:
            if self._kept is not None and segment in self._kept:
                return False
            self._claimed.add(segment)
            return True

    def release(self, segments: Iterable[int]) -> None:
        """End the claims of segments; segments without a claim are ignored."""
        with self._lock:
            self._claimed.difference_update(segments)

    def keep_unclaimed(self, segments: Iterable[int]) -> None:
        """Prevent claims of segments until the end of the batch. Does nothing outside of a batch."""
        if self._kept is not None:
            with self._lock:
                self._kept.update(segments)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """End `keep_unclaimed` after the context, which ends with the commit. Only the holder of the write lock has a batch."""
        kept = self._kept = set[int]()
        try:
            yield
        finally:
            with self._lock:
                if self._kept is kept:  # the next batch may have begun since the commit
                    self._kept = None
