"""The segments in open claims. The delivery claims segments, and the writers of entries read the claims."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ClaimedSegments:
    """The ids of the segments in open claims. Thread-safe. In memory only, so claimed entries are pending again after a crash.

    A transaction that moves entries out of a segment reads the open claims. They show whether the former value may have been
    sent, and for which segments the new value waits. A batch takes longer and may change an entry again. So if a batch moves
    entries out of an unclaimed segment, the segment can't be claimed before the commit of the batch.
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
        """Claim a segment; return False if a running batch moves entries out of it."""
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
        """Apply `keep_unclaimed` until the context ends, after the commit. Only the holder of the write lock may open it."""
        kept = self._kept = set[int]()
        try:
            yield
        finally:
            with self._lock:
                if self._kept is kept:  # the next batch may have begun since the commit
                    self._kept = None
