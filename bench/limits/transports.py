"""The speed of the candidate transports, with requests of one entry each to the counting server.

``python -m bench.limits.transports URL PATH`` prints the requests a second of each transport, with eight in flight, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import httpx
import uvloop
from httpx_aiohttp import AiohttpTransport

from ingestd.client import Timeouts
from ingestd.client.fast_transport import FastTransport, ServerAddress

IN_FLIGHT = 8
REQUESTS = 4_000


HEADERS = {"x-api-key": "bench", "ClientId": "bench", "Content-Type": "application/json"}
BODY = b'{"key":"P%08d/mass","value":"1.25 kg A","dataType":"scalar"}'


async def rate(send: Callable[[bytes], Awaitable[int]]) -> float:
    """Return requests a second. ``send`` sends a body and returns the status."""
    numbers = iter(range(REQUESTS))

    async def work() -> None:
        for number in numbers:
            if (status := await send(BODY % number)) != 201:
                raise SystemExit(f"the server responded with {status}")

    started = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(IN_FLIGHT)])
    return REQUESTS / (time.perf_counter() - started)


async def rate_of_httpx(transport: httpx.AsyncBaseTransport, address: str) -> float:
    url = httpx.URL(address)
    timeout = {"connect": 5.0, "read": 30.0, "write": 30.0, "pool": 30.0}

    async def send(body: bytes) -> int:
        request = httpx.Request("POST", url, headers=HEADERS, content=body, extensions={"timeout": timeout})
        response = await transport.handle_async_request(request)
        await response.aread()
        return response.status_code

    async with transport:
        return await rate(send)


async def rate_of_ours(address: str) -> float:
    url = httpx.URL(address)
    fields = b"".join([b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in HEADERS.items()])
    head = b"POST %b HTTP/1.1\r\nHost: %b\r\n%bContent-Length: " % (url.raw_path, url.netloc, fields)
    transport = FastTransport(ServerAddress.of(address), Timeouts(write_seconds=30.0, read_seconds=30.0))

    async def send(body: bytes) -> int:
        return (await transport.send(head + b"%d\r\n\r\n%b" % (len(body), body))).status

    measured = await rate(send)
    transport.close()
    return measured


async def measured(address: str) -> dict[str, float]:
    return {
        "httpx": await rate_of_httpx(httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=100)), address),
        "httpx-aiohttp": await rate_of_httpx(AiohttpTransport(trust_env=False), address),
        "ours": await rate_of_ours(address),
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measured(sys.argv[1] + sys.argv[2]))))
