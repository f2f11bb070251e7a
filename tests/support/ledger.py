"""A transport that counts writes and faults by key, between a client and its real transport."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

import httpx

from tests.support.entry_writes import written_keys


@dataclass(frozen=True, slots=True)
class _Sent:
    method: str
    path: str
    body: bytes


@dataclass(slots=True, kw_only=True)
class Ledger(httpx.AsyncBaseTransport):
    """Counts by key. ``written``: requests with a successful and complete response; ``faults``: all other requests."""

    inner: httpx.AsyncBaseTransport
    written: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        keys = written_keys(_Sent(request.method, request.url.raw_path.decode(), body))
        try:
            response = await self.inner.handle_async_request(request)
            content = await response.aread()
        except httpx.HTTPError:
            self.faults.update(keys)
            raise
        (self.written if response.is_success and _whole(content) else self.faults).update(keys)
        return httpx.Response(
            response.status_code,
            headers=[field for field in response.headers.raw if field[0].lower() != b"content-encoding"],
            content=content,
        )

    def written_too_often(self, changes: Counter[str]) -> dict[str, tuple[int, int, int]]:
        """Return (written, changed, faults) of each key that was written more often than changes and faults explain."""
        return {
            key: (count, changes[key], self.faults[key])
            for key, count in self.written.items()
            if count > changes[key] + self.faults[key]
        }


def _whole(content: bytes) -> bool:
    try:
        json.loads(content or b"null")
    except ValueError:
        return False
    return True
