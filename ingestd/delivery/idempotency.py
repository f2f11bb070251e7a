"""Idempotency keys: a request that is repeated after an unknown outcome keeps its key, and any other request has a new key.

A hash of the body alone would be wrong. A service stores its response to a key for a day, and repeats it instead of acting.
Then a value that changes from A to B and back to A would stay at B. A refusal, for example because of a quota, would be repeated
long after its cause is removed. So a key also covers the number of refusals that the lane received, and the segments that are
sent. An acknowledged segment is never sent again. The key of entries also covers the run of the daemon.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


class IdempotencyKeys:
    """The idempotency keys of one lane. ``nonce`` identifies this run of the daemon."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._refusals = 0

    def record_refusal(self) -> None:
        """Use new keys from now on, because the service refused a request."""
        self._refusals += 1

    def for_entries(self, sink: str, segments: Iterable[int], body: bytes) -> str:
        """Return the key of a request that sends entries of these segments to a sink."""
        return self._key(self._nonce, sink, *map(str, segments), body=body)

    def for_sink(self, address: str, body: bytes) -> str:
        """Return the key of a request that creates a sink.

        The key is the same in a later run of the daemon, because creating a sink twice is worse than a repeated response.
        """
        return self._key("sink", address, body=body)

    def _key(self, *parts: str, body: bytes) -> str:
        digest = hashlib.sha256("\x00".join((*parts, str(self._refusals), "")).encode())
        digest.update(body)
        return digest.hexdigest()[:40]
