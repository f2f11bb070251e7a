"""The ids of durable messages. With these, a repeated message is recognized, acknowledged and not stored again.

The newest ids are in the cursor, which is committed together with the records. When the cursor has many ids, they move to a
file of the connector. The cursor keeps the ids until the file is written, so a crash loses no id.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from ingestd.sdk import KeptFile

MAX_IDS = 60_000
"""The maximum number of ids in the file. The oldest ids are forgotten."""
_DIGEST_BYTES = 16
_IN_CURSOR = 128
_MOST_IN_CURSOR = 4_096


class KnownIds:
    """Digests of ids in the order of their arrival. Only the thread that reads the source may use this object."""

    def __init__(self, file: KeptFile) -> None:
        self._file = file
        self._known: dict[bytes, None] | None = None
        self._recent: dict[bytes, None] = {}

    def load(self, recent: Iterable[str]) -> None:
        """Begin a reading. ``recent``: the ids in the durable cursor. Raise `OSError` if the file can't be read."""
        if self._known is None:
            stored = self._file.read() or b""
            whole = len(stored) - len(stored) % _DIGEST_BYTES
            self._known = {stored[at : at + _DIGEST_BYTES]: None for at in range(0, whole, _DIGEST_BYTES)}
        self._recent = {base64.b64decode(one): None for one in recent}

    def __contains__(self, identity: str) -> bool:
        """Return whether the id belongs to a durable message, or to a message of the next batch (`add`)."""
        digest = _digest(identity)
        return digest in self._recent or digest in (self._known or {})

    def add(self, identity: str) -> None:
        """Add the id of a message that the next batch stores."""
        self._recent[_digest(identity)] = None

    def to_token(self) -> list[str]:
        """Return the ids for the cursor."""
        return [base64.b64encode(digest).decode() for digest in self._recent]

    @property
    def is_full(self) -> bool:
        """True if the cursor has the maximum number of ids, because the file could not be written."""
        return len(self._recent) >= _MOST_IN_CURSOR

    def compact(self) -> None:
        """Move the ids of the cursor to the file if there are many. All these ids must be committed already.

        Raises:
            OSError: the file can't be written. The cursor keeps the ids.
        """
        if len(self._recent) < _IN_CURSOR or self._known is None:
            return
        newest = list({**self._known, **self._recent})[-MAX_IDS:]
        self._file.write(b"".join(newest))
        self._known = dict.fromkeys(newest)
        self._recent = {}


def _digest(identity: str) -> bytes:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
