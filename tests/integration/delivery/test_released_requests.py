"""A large request is not in memory any longer than it takes."""

from __future__ import annotations

import gc
import json

import httpx
import pytest

from ingestd.client import Client
from ingestd.client.fast_exchange import SMALL_BODY_BYTES
from ingestd.client.records import EntryChange
from ingestd.client.service import ServiceClient
from tests.support.document_server import DocumentServer, Garbage, Refuse

ITEMS = 2
BODY = json.dumps([{"key": f"k{item}", "value": "1" * SMALL_BODY_BYTES} for item in range(ITEMS)]).encode()


@pytest.mark.parametrize(
    "response",
    [Garbage(status=200, body=b'{"accepted":2}', content_type="application/json"), Refuse(status=503)],
    ids=["accepted", "refused"],
)
async def test_a_request_is_released_without_a_search_for_reference_cycles(response: Garbage | Refuse) -> None:
    with DocumentServer(fault_of=lambda _: response) as server:
        async with ServiceClient(url=server.url, api_key="key", client_id="tester") as client:
            gc.collect()
            gc.disable()
            try:
                for number in range(3):
                    await client.mass_update("w", "s", body=BODY, items=ITEMS, idempotency_key=f"k-{number}")
                left = requests_in_memory(server)
            finally:
                gc.enable()
    assert len(server.requests) == 3
    assert not left


def test_a_request_of_the_blocking_client_is_released_without_a_search_for_reference_cycles() -> None:
    counts = {"accepted": ITEMS, "created": ITEMS, "updated": 0, "unchanged": 0, "deleted": 0}
    response = Garbage(status=200, body=json.dumps(counts).encode(), content_type="application/json")
    changes = [EntryChange(key=f"k{item}", value="1" * SMALL_BODY_BYTES) for item in range(ITEMS)]
    with DocumentServer(fault_of=lambda _: response) as server, Client(server.url, api_key="key") as client:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                client.mass_update_minimal("w", "s", changes)
            left = requests_in_memory(server)
        finally:
            gc.enable()
    assert len(server.requests) == 3
    assert not left


def requests_in_memory(server: DocumentServer) -> list[httpx.Request]:
    """The requests to *server* that are in memory, since other tests of the process may have left requests, too.

    A response that is in memory has its request there.
    """
    requests = (one for one in gc.get_objects() if isinstance(one, httpx.Request))
    return [request for request in requests if str(request.url).startswith(server.url)]
