"""Requests about one entry, straight over a transport: the same requests and judgements, without what a client of httpx adds.

No redirects, cookies, authentication flows or event hooks are wanted here, and the addresses of creating and mass-updating are
the same for every entry of a sink. What is left is a third of the time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TypeVar

import httpx

from ingestd.client.caller import Caller, HttpOptions
from ingestd.client.faults import fault_of
from ingestd.client.judgement import Judgement
from ingestd.client.operations import fill
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.wire import names

T = TypeVar("T")

_MOST_ADDRESSES = 256


class QuickExchange:
    """As `AsyncExchange`, for requests without a query and answers that fit into memory."""

    def __init__(
        self, caller: Caller, judgement: Judgement, transport: httpx.AsyncBaseTransport, made_with: HttpOptions
    ) -> None:
        self._judgement = judgement
        self._transport = transport
        self._base = caller.url.rstrip("/")
        host = httpx.URL(self._base).netloc
        always = {**made_with["headers"], names.CLIENT_ID: caller.client_id, "Content-Type": names.JSON}
        self._headers = [(b"Host", host), *(_field(name, value) for name, value in always.items())]
        self._extensions = {"timeout": made_with["timeout"].as_dict()}
        self._addresses: OrderedDict[str, httpx.URL] = OrderedDict()

    async def reply(self, request: Request[T]) -> Reply[T]:
        """Send a request and read its answer to the end."""
        body = request.body or b""
        fields = [_field(name, value) for name, value in request.headers.items()]
        message = httpx.Request(
            request.operation.method,
            self._address(fill(request.operation, request.names)),
            headers=[*self._headers, *fields, (b"Content-Length", b"%d" % len(body))],
            # Content as such would be looked at, and the headers be made anew.
            stream=httpx.ByteStream(body),
            extensions=self._extensions,
        )
        started = time.perf_counter()
        try:
            response = await self._transport.handle_async_request(message)
            if not response.is_stream_consumed:
                await response.aread()
        except httpx.HTTPError as error:
            return self._judgement.no_answer(request.operation, fault_of(error), started)
        return self._judgement.reply(request, response, started)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _address(self, path: str) -> httpx.URL:
        known = self._addresses.get(path)
        if known is None:
            known = self._addresses[path] = httpx.URL(self._base + path)
            if len(self._addresses) > _MOST_ADDRESSES:
                self._addresses.popitem(last=False)
        return known


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("ascii"), value.encode("ascii")
