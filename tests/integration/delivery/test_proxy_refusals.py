"""A proxy that temporarily rejects everything delays delivery, but rejects no entry and recreates no sink."""

from __future__ import annotations

import httpx
import pytest

from ingestd.core.address import SinkAddress
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import rig

STATUSES = (400, 404, 405, 407, 409, 410, 413, 414, 415, 422, 431)
PAGES = {"page": b"<html><body>Bad Request</body></html>", "nothing": b"", "gateway": b'{"message":"no route"}'}


class RefusingProxy(httpx.AsyncBaseTransport):
    """Responds to the next ``refusals`` requests itself."""

    def __init__(self, inner: httpx.AsyncBaseTransport, status: int, body: bytes) -> None:
        self.inner = inner
        self.refusals = 0
        self._status = status
        self._body = body

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.refusals:
            self.refusals -= 1
            return httpx.Response(self._status, content=self._body)
        return await self.inner.handle_async_request(request)


@pytest.mark.parametrize("announce", [True, False], ids=["bulk", "single"])
@pytest.mark.parametrize("body", PAGES.values(), ids=PAGES.keys())
@pytest.mark.parametrize("status", STATUSES)
async def test_a_proxy_that_rejects_everything_only_delays(status: int, body: bytes, announce: bool) -> None:
    service = BulkService(announce=announce)
    proxy = RefusingProxy(service, status, body)
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    sinks = [SinkAddress(workspace=workspace, by="label", name=f"Sink {number}") for number in range(2)]
    async with rig(transport=proxy) as running:
        proxy.refusals = 5
        for value in ("1", "2"):
            for sink in sinks:
                running.desire(sink, {"a": (value, "scalar"), "b": (value, "scalar"), value: ("new", "scalar")})
            assert await running.drained() == []
            # Now the sinks are known, and entries are written.
            proxy.refusals = 9
    assert running.mirror.rejected_entries == {}
    for sink in sinks:
        (made,) = service.store.by_label(sink.name)
        held = {key: value for key, (value, _) in service.store.values(made).items()}
        assert held == {"a": "2", "b": "2", "1": "new", "2": "new"}
    sentences = {attempt.sentence for _, attempt in running.mirror.attempts if attempt.status == status}
    assert sentences
    if status != 413:
        assert all("A proxy seems to respond" in sentence for sentence in sentences)
