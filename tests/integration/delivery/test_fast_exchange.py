"""Small requests over the fast transport and over httpx: the same requests and the same responses."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec
import pytest

from ingestd.client.fast_exchange import SMALL_BODY_BYTES
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from tests.support.document_server import DocumentServer, Fault, Garbage, Refuse, Request

WORKSPACE, SINK = "w 1", "s/ü"
BULK = '[{"key":"ä b","value":"1"},{"key":"c","value":"2"}]'.encode()
CALLS: dict[str, Callable[[ServiceClient], Awaitable[ServiceResponse[Any]]]] = {
    "create": lambda client: client.create_entry(
        WORKSPACE, SINK, key="ä b", body='{"key":"ä b","value":"1"}'.encode(), idempotency_key="k-1"
    ),
    "update": lambda client: client.mass_update_entry(WORKSPACE, SINK, key="ä b", value="2", idempotency_key="k-2"),
    "patch": lambda client: client.patch_entry(WORKSPACE, SINK, key="a/b", value=None, data_type="text"),
    "delete": lambda client: client.delete_entry(WORKSPACE, SINK, key="a?b"),
    "bulk": lambda client: client.mass_update(WORKSPACE, SINK, body=BULK, items=2, idempotency_key="k-3"),
    "partial bulk": lambda client: client.mass_update(
        WORKSPACE, SINK, body=BULK, items=2, idempotency_key="k-4", partial=True
    ),
}
RESPONSES: dict[str, Fault] = {
    "taken": Garbage(status=201, body='{"id":"1","key":"ä b","value":"1"}'.encode(), content_type="application/json"),
    "counts": Garbage(status=200, body=b'{"accepted":2}', content_type="application/json"),
    "other counts": Garbage(status=200, body=b'{"accepted":3}', content_type="application/json"),
    "results": Garbage(
        status=200,
        body=b'{"results":[{"index":0,"key":"a","status":200},{"index":1,"key":"c","status":422,"reason":"no"}]}',
        content_type="application/json",
    ),
    "another key": Garbage(status=200, body=b'{"key":"another"}', content_type="application/json"),
    "nothing": Garbage(status=204, body=b""),
    "a page": Garbage(status=200),
    "refused": Refuse(status=422, headers={"X-Request-Id": "r-7"}, body=b'{"error":"Out of range."}'),
    "throttled": Refuse(status=429, headers={"Retry-After": "7", "RateLimit": '"a";r=3;t=9'}),
    "announcing": Refuse(
        status=201,
        headers={"X-Bulk-Mass": "max-items=5, max-bytes=500", "Accept-Encoding": "gzip", "Idempotent-Replayed": "true"},
        body='{"key":"ä b"}'.encode(),
    ),
    "redirected": Refuse(status=307, headers={"Location": "https://user:secret@other.test/x?k=1"}),
}
NOT_OURS = {"accept-encoding", "connection"}


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("call", CALLS)
async def test_both_transports_send_and_read_the_same(call: str, response: str) -> None:
    with DocumentServer(fault_of=lambda _: RESPONSES[response]) as server:
        responses = []
        for transport in (None, httpx.AsyncHTTPTransport()):
            url = f"{server.url}/below/here/"
            async with ServiceClient(url=url, api_key="key", client_id="tester", transport=transport) as client:
                responses.append(await CALLS[call](client))
        fast, usual = (as_acted_on(request) for request in server.requests)
    assert fast == usual
    assert understood(responses[0]) == understood(responses[1])


@pytest.mark.parametrize(("size", "is_fast"), [(SMALL_BODY_BYTES, True), (SMALL_BODY_BYTES + 1, False)])
async def test_a_large_bulk_request_is_sent_by_httpx(size: int, is_fast: bool) -> None:
    body = b'[{"key":"a","value":"%b"}]' % (b"1" * (size - len(b'[{"key":"a","value":""}]')))
    with DocumentServer(fault_of=lambda _: RESPONSES["counts"]) as server:
        async with ServiceClient(url=server.url, api_key="key", client_id="tester") as client:
            await client.mass_update(WORKSPACE, SINK, body=body, items=1, idempotency_key="k-5")
    (request,) = server.requests
    assert len(body) == len(request.body) == size
    assert ("accept-encoding" not in request.headers) == is_fast


def as_acted_on(request: Request) -> dict[str, Any]:
    """Return the parts of a request that affect the service; headers of an absent body are optional."""
    headers = {name: value for name, value in request.headers.items() if name not in NOT_OURS}
    if not request.body:
        headers.pop("content-length", None)
        headers.pop("content-type", None)
    return dataclasses.asdict(request) | {"headers": headers}


def understood(response: ServiceResponse[Any]) -> dict[str, Any]:
    return msgspec.structs.asdict(response) | {"milliseconds": 0}
