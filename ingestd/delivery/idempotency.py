"""Idempotency keys: the same for a request that is sent again because its answer is unknown, never for another intent.

A hash of the body alone would be wrong. A service keeps its answer to a key for a day and repeats it instead of acting:
a value that goes from A to B and back to A would be left at B, and a refusal (a quota, say) would be repeated long after
its cause was removed. So a key also takes in the segments that are sent (one that was settled never comes again), how many
refusals the lane has met, and, for entries, which run of the daemon it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


class IdempotencyKeys:
    """The keys of one lane. ``nonce`` tells this run of the daemon from every other."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._refusals = 0

    def refused(self) -> None:
        """The service has answered with a refusal: what is sent from now on is a new intent."""
        self._refusals += 1

    def for_entries(self, place: str, segments: Iterable[int], body: bytes) -> str:
        """The key of a request with entries of these segments to a sink."""
        return self._key(self._nonce, place, *map(str, segments), body=body)

    def for_sink(self, address: str, body: bytes) -> str:
        """The key of a request that creates a sink; the same in a later run, for creating twice is worse than a replay."""
        return self._key("sink", address, body=body)

    def _key(self, *parts: str, body: bytes) -> str:
        digest = hashlib.sha256("\x00".join((*parts, str(self._refusals), "")).encode())
        digest.update(body)
        return digest.hexdigest()[:40]
