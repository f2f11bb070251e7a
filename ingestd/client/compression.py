"""Bodies compressed with gzip, for a service that announces that it accepts them (RFC 9110, section 12.5.3)."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any, TypeVar

import msgspec

from ingestd.client.request import Request
from ingestd.client.response import ServiceResponse
from ingestd.wire import names

T = TypeVar("T")

MIN_BYTES = 4 * 1024
"""Smaller bodies are not compressed: it would take longer than it saves."""

_LEVEL = 1


class BodyCompression:
    """Decides for one service whether bodies are compressed. ``enabled``: the connection is worth it."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._accepted = False

    def record_response(self, response: ServiceResponse[Any]) -> None:
        """Keep what the newest success announces."""
        if response.ok:
            self._accepted = response.takes_gzip

    def disable(self) -> None:
        """Compress no more bodies: the service rejected one that it had announced to accept."""
        self._enabled = False

    async def compressed(self, request: Request[T]) -> Request[T]:
        """Return the request with its body compressed in a thread, or the request itself."""
        if not (self._enabled and self._accepted) or request.body is None or len(request.body) < MIN_BYTES:
            return request
        body = await asyncio.to_thread(gzip.compress, request.body, _LEVEL, mtime=0)
        headers = {**request.headers, names.CONTENT_ENCODING: "gzip"}
        return msgspec.structs.replace(request, body=body, headers=headers)
