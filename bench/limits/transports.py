"""Requests of one entry by every transport that could carry them, to the counting server: what each of them costs.

``python -m bench.limits.transports URL PATH`` prints requests a second by transport, eight in flight, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import httpx
import uvloop
from httpx_aiohttp import AiohttpTransport

from ingestd.client.quick_transport import QuickTransport

IN_FLIGHT = 8
REQUESTS = 4_000


async def rate(transport: httpx.AsyncBaseTransport, address: str) -> float:
    url = httpx.URL(address)
    numbers = iter(range(REQUESTS))

    async def send() -> None:
        for number in numbers:
            request = httpx.Request(
                "POST",
                url,
                headers={"x-api-key": "bench", "ClientId": "bench", "Content-Type": "application/json"},
                content=b'{"key":"P%08d/mass","value":"1.25 kg A","dataType":"scalar"}' % number,
                extensions={"timeout": {"connect": 5.0, "read": 30.0, "write": 30.0, "pool": 30.0}},
            )
            response = await transport.handle_async_request(request)
            await response.aread()
            if response.status_code != 201:
                raise SystemExit(f"got status {response.status_code}")

    started = time.perf_counter()
    await asyncio.gather(*[send() for _ in range(IN_FLIGHT)])
    took = time.perf_counter() - started
    await transport.aclose()
    return REQUESTS / took


async def measured(address: str) -> dict[str, float]:
    return {
        "httpx": await rate(httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=100)), address),
        "httpx-aiohttp": await rate(AiohttpTransport(trust_env=False), address),
        "ours": await rate(QuickTransport(), address),
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measured(sys.argv[1] + sys.argv[2]))))
