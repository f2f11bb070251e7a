"""Small requests over the fast transport and over httpx: the same requests and the same responses."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.client.fast_exchange import SMALL_BODY_BYTES
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from tests.support.document_server import DocumentServer, Fault, Garbage, Refuse, Request

WORKSPACE, SINK = "w 1", "s/ü"
BULK = '[{"key":"ä b","value":"1"},{"key":"c","value":"2"}]'.encode()
CALLS: dict[str, Callable[[ServiceClient], Awaitable[ServiceResponse[Any]]]] = {
    "create": lambda client: client.create_entry(
        WORKSPACE, SINK, key="ä b", value="1", body='{"key":"ä b","value":"1"}'.encode(), idempotency_key="k-1"
    ),
    "update": lambda client: client.mass_update_entry(
        WORKSPACE, SINK, key="ä b", value="2", body='{"key":"ä b","value":"2"}'.encode(), idempotency_key="k-2"
    ),
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


KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda key: key not in {".", ".."}
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LATIN = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=12)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Retry-After": st.integers(0, 90).map(str) | LATIN,
        "Location": LATIN,
        "X-Request-Id": LATIN,
        "X-Error-Code": LATIN,
        "X-Bulk-Mass": st.just("max-items=5, max-bytes=500") | LATIN,
        "X-Writer": st.just("tester;1;42") | LATIN,
        "X-Writer-Fence": LATIN,
        "Accept-Encoding": st.sampled_from(["gzip", "identity"]),
        "Idempotent-Replayed": st.sampled_from(["true", "false"]),
        "RateLimit": st.just('"a";r=3;t=9') | LATIN,
        "Content-Type": st.sampled_from(["application/json", "application/problem+json", "text/html"]),
    },
)


def bodies(key: str) -> st.SearchStrategy[bytes]:
    """Return bodies that are right, nearly right or anything."""
    members: dict[str, st.SearchStrategy[Any]] = {
        "key": st.just(key) | st.just(key.upper()) | TEXTS,
        "value": TEXTS | st.none() | st.integers(),
        "dataType": TEXTS,
        "accepted": st.integers(0, 3),
        "results": st.lists(st.fixed_dictionaries({"index": st.integers(0, 2), "status": st.sampled_from([200, 422])})),
        "error": TEXTS,
        "detail": TEXTS,
        "code": TEXTS,
        "errors": st.lists(st.fixed_dictionaries({"pointer": TEXTS, "code": TEXTS, "detail": TEXTS}), max_size=2),
    }
    record = st.fixed_dictionaries({}, optional=members)
    return (record | st.lists(record, max_size=2)).map(lambda found: json.dumps(found).encode()) | st.binary(
        max_size=20
    )


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[DocumentServer, list[Fault]]]:
    """Run a server that responds to each request with the last of a list."""
    responses: list[Fault] = [Refuse(status=500)]
    with DocumentServer(fault_of=lambda _: responses[-1]) as server:
        yield server, responses


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_transports_are_equal_for_any_call_and_any_response(
    scripted: tuple[DocumentServer, list[Fault]], data: st.DataObject
) -> None:
    server, responses = scripted
    key, value = data.draw(KEYS), data.draw(TEXTS)
    token = data.draw(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20))
    items = json.dumps([{"key": key, "value": value}, {"key": key}]).encode()
    call: Callable[[ServiceClient], Awaitable[ServiceResponse[Any]]] = data.draw(
        st.sampled_from(
            [
                lambda client: client.list_workspaces(),
                lambda client: client.list_sinks(WORKSPACE),
                lambda client: client.fence(WORKSPACE),
                lambda client: client.get_entry(WORKSPACE, SINK, key=key),
                lambda client: client.create_entry(
                    WORKSPACE, SINK, key=key, value=value, body=json.dumps({"key": key}).encode(), idempotency_key=token
                ),
                lambda client: client.mass_update_entry(
                    WORKSPACE, SINK, key=key, value=value, body=json.dumps({"key": key}).encode(), idempotency_key=token
                ),
                lambda client: client.patch_entry(WORKSPACE, SINK, key=key, value=value or None, data_type=None),
                lambda client: client.delete_entry(WORKSPACE, SINK, key=key),
                lambda client: client.mass_update(WORKSPACE, SINK, body=items, items=2, idempotency_key=token),
                lambda client: client.mass_update(
                    WORKSPACE, SINK, body=items, items=2, idempotency_key=token, partial=True
                ),
                lambda client: client.create_sink(WORKSPACE, body=items, keys=[key], idempotency_key=token),
            ]
        )
    )
    status = data.draw(
        st.sampled_from([200, 201, 204, 304, 307, 400, 401, 403, 404, 409, 410, 412, 413, 415, 422, 429, 503])
    )
    body = b"" if status in {204, 304} else data.draw(bodies(key))
    responses.append(Refuse(status=status, headers=data.draw(HEADERS), body=body))
    server.forget_requests()

    async def both() -> list[ServiceResponse[Any]]:
        found = []
        for transport in (None, httpx.AsyncHTTPTransport()):
            url = f"{server.url}/below/here/"
            async with ServiceClient(url=url, api_key="key", client_id="tester", transport=transport) as client:
                found.append(await call(client))
        return found

    fast, usual = asyncio.run(both())
    assert understood(fast) == understood(usual)
    assert as_acted_on(server.requests[0]) == as_acted_on(server.requests[1])


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
