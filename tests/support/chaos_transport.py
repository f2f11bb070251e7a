"""An httpx transport that injects faults into another transport. The faults are repeatable, because they depend on a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

KINDS = ("drop before", "drop after", "429", "503", "500", "html", "truncated", "408", "timeout")


@dataclass(slots=True, kw_only=True)
class ChaosTransport(httpx.AsyncBaseTransport):
    """Injects faults into the share ``share`` of requests. There are at most ``most`` faults, so that each scenario ends."""

    inner: httpx.AsyncBaseTransport
    seed: int
    share: float = 0.4
    most: int = 200
    kinds: Sequence[str] = KINDS
    met: Counter[str] = field(default_factory=Counter)
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.met.total() >= self.most or self._rng.random() >= self.share:
            return await self.inner.handle_async_request(request)
        kind = self._rng.choice(self.kinds)
        self.met[kind] += 1
        match kind:
            case "drop before":
                raise httpx.ReadError("reset by chaos")
            case "429" | "503":
                return httpx.Response(int(kind), headers={"Retry-After": "0"}, content=b'{"error":"later"}')
            case "500" | "408":
                return httpx.Response(int(kind), content=b"")
            case "html":
                return httpx.Response(200, html="<html>sign in</html>")
        response = await self.inner.handle_async_request(request)
        content = await response.aread()
        await response.aclose()
        match kind:
            case "drop after":
                raise httpx.RemoteProtocolError("closed by chaos")
            case "timeout":
                raise httpx.ReadTimeout("slow by chaos")
        return httpx.Response(response.status_code, content=content[: len(content) // 2])
