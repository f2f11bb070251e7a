"""Bodies packed with gzip, for a service that announces that it takes them (RFC 9110, 12.5.3)."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import ipaddress
from typing import Any, TypeVar

from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.wire import names

T = TypeVar("T")

LEAST_BYTES = 4 * 1024
"""Less than this is not worth the time of packing it."""

_LEVEL = 1


class Packing:
    """What is known of one service. ``wanted``: packing is worth while on the way to it."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._taken = False

    def heard(self, reply: Reply[Any]) -> None:
        """An answer came; the newest announcement counts."""
        if reply.ok:
            self._taken = reply.takes_gzip

    def refused(self) -> None:
        """What was announced does not hold; never try again."""
        self._wanted = False

    async def packed(self, request: Request[T]) -> Request[T]:
        """The same request with its body packed, or the request itself. Packs in a thread: it takes longer than sending."""
        if not (self._wanted and self._taken) or request.body is None or len(request.body) < LEAST_BYTES:
            return request
        body = await asyncio.to_thread(gzip.compress, request.body, _LEVEL, mtime=0)
        headers = {**request.headers, names.CONTENT_ENCODING: "gzip"}
        return dataclasses.replace(request, body=body, headers=headers)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, as far as its name tells."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
