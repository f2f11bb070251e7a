"""Requests of one entry each, with a fixed number of requests in flight.

``python -m bench.limits.fixed ADDRESS NUMBER…`` prints the requests a second for each number in flight, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import httpx
import uvloop

from ingestd.client import Timeouts
from ingestd.client.fast_transport import FastTransport, ServerAddress

SECONDS = 2.0


async def rate(address: str, in_flight: int) -> float:
    url = httpx.URL(address)
    transport = FastTransport(ServerAddress.of(address), Timeouts())
    head = b"POST %b HTTP/1.1\r\nHost: %b\r\nContent-Length: %%d\r\n\r\n%%b" % (url.raw_path, url.netloc)
    ends = time.monotonic() + SECONDS
    done = 0

    async def send() -> None:
        nonlocal done
        while time.monotonic() < ends:
            body = b'{"key":"P%08d/mass","value":"1","dataType":"scalar"}' % done
            await transport.send(head % (len(body), body))
            done += 1

    await asyncio.gather(*[send() for _ in range(in_flight)])
    transport.close()
    return done / SECONDS


async def measured(address: str, numbers: list[int]) -> dict[int, float]:
    return {number: await rate(address, number) for number in numbers}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(measured(sys.argv[1], [int(number) for number in sys.argv[2:]]))))
