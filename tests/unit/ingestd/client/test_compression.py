from __future__ import annotations

import gzip

import httpx
import pytest

from ingestd.client.service import ServiceClient, is_loopback

BODY = b"[" + b",".join(b'{"key":"K-%05d","value":"1","dataType":"scalar"}' % n for n in range(500)) + b"]"


class Service(httpx.AsyncBaseTransport):
    """Records what it receives; ``takes``: it announces gzip; ``refuses``: it rejects compressed bodies nevertheless."""

    def __init__(self, *, takes: bool = True, refuses: bool = False) -> None:
        self.takes = takes
        self.refuses = refuses
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        packed = request.headers.get("Content-Encoding") == "gzip"
        if packed and self.refuses:
            return httpx.Response(415, json={"error": "Unsupported media type"})
        content = gzip.decompress(request.content) if packed else request.content
        assert content == BODY
        return httpx.Response(200, json={"accepted": 500}, headers={"Accept-Encoding": "gzip"} if self.takes else {})


async def sent(service: Service, *, url: str = "http://service.test", compress: bool = True) -> list[bool]:
    """Return for each request of three mass-updates whether it was compressed."""
    async with ServiceClient(url=url, api_key="k", client_id="c", transport=service, compress=compress) as client:
        for number in range(3):
            response = await client.mass_update("w", "s", body=BODY, items=500, idempotency_key=str(number))
            assert response.ok
    return ["Content-Encoding" in request.headers for request in service.requests]


async def test_bodies_are_compressed_after_the_service_has_announced_support() -> None:
    service = Service()
    assert await sent(service) == [False, True, True]
    assert len(service.requests[1].content) < len(BODY) / 5


async def test_bodies_are_not_compressed_without_an_announcement() -> None:
    assert await sent(Service(takes=False)) == [False] * 3
    assert await sent(Service(), compress=False) == [False] * 3
    assert await sent(Service(), url="http://127.0.0.1:9") == [False] * 3


async def test_a_service_that_rejects_compression_gets_one_compressed_request_only() -> None:
    assert await sent(Service(refuses=True)) == [False, True, False, False]


@pytest.mark.parametrize(
    ("host", "here"), [("localhost", True), ("127.8.0.1", True), ("::1", True), ("10.0.0.1", False), ("h.test", False)]
)
def test_names_of_this_machine_are_recognised(host: str, here: bool) -> None:
    assert is_loopback(host) is here
