"""A message between the listener and the reading."""

from __future__ import annotations

from concurrent.futures import Future

import msgspec

from ingestd.sdk.formats import RecordChunk


class NotStored(Exception):
    """The message could not be stored now; the client sends it again."""


class PushedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Decoded records of one request. ``id``: empty if the client sends none.

    ``stored`` ends when the records are durable, with `NotStored` if they could not be stored. It is cancelled if the client does
    not wait any more.
    """

    id: str
    chunks: tuple[RecordChunk, ...]
    size: int
    stored: Future[None] = msgspec.field(default_factory=Future)
