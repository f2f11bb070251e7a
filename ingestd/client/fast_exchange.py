"""Small requests over the fast transport: the same requests and responses as `AsyncExchange`, in less time.

Two requests about entries of one sink differ only in a few headers and the body. So the common part of the head is built
once for each sink and operation. Redirects, cookies, authentication flows and event hooks of httpx are not needed here.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx

from ingestd.client.fast_transport import FastTransport
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.request import Request
from ingestd.client.request_builder import BASE_HEADERS, RequestBuilder
from ingestd.client.response import ServiceResponse
from ingestd.wire import names

T = TypeVar("T")

SMALL_BODY_BYTES = 64 * 1024
"""The largest body for this exchange. With a larger body, the overhead of httpx is small compared with sending the body."""

_MAX_HEADS = 256


class FastExchange:
    """The exchange for requests with a reader that needs no headers. The response's body is read into memory."""

    def __init__(self, builder: RequestBuilder, parser: OutcomeParser, transport: FastTransport) -> None:
        self._builder = builder
        self._parser = parser
        self._transport = transport
        self._heads: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._client_id = _line(names.CLIENT_ID, builder.client_id)
        self._use(builder.key.current())

    async def send(self, request: Request[T]) -> ServiceResponse[T]:
        """See `AsyncExchange.send`."""
        body = request.body or b""
        headers = b"".join([_line(name, value) for name, value in request.headers.items()])
        message = b"%b%bContent-Length: %d\r\n\r\n%b" % (self._head(request), headers, len(body), body)
        started = self._parser.clock()
        try:
            response = await self._transport.send(message, request.max_response_bytes)
        except httpx.HTTPError as error:
            return self._parser.failed(request.operation, error, started)
        if response.status == 401:
            self._builder.key.reject()
        return self._parser.parse(request, response.status, response.headers, response.body, started=started)

    async def aclose(self) -> None:
        """See `AsyncExchange.aclose`."""
        self._transport.close()

    def _head(self, request: Request[Any]) -> bytes:
        """Return the part of the message that all requests of one operation to one path share."""
        api_key = self._builder.key.current()
        if api_key is not self._api_key:
            self._use(api_key)
        operation = request.operation
        query = urlencode(request.query) if request.query else ""
        which = (operation.name, *request.names.values(), query)
        head = self._heads.get(which)
        if head is None:
            path = f"{request.path}?{query}" if query else request.path
            target = self._transport.address.prefix + path.encode("ascii")
            fields = self._fields if operation.method == "GET" else self._fields + self._client_id
            head = b"%b %b HTTP/1.1\r\n%b" % (operation.method.encode("ascii"), target, fields)
            self._heads[which] = head
            if len(self._heads) > _MAX_HEADS:
                self._heads.popitem(last=False)
        return head

    def _use(self, api_key: str | None) -> None:
        self._api_key = api_key
        self._heads.clear()
        fields = {**BASE_HEADERS, "Content-Type": names.JSON}
        if api_key is not None:
            fields[names.API_KEY] = api_key
        self._fields = b"Host: %b\r\n%b" % (
            self._transport.address.host_header,
            b"".join(_line(*field) for field in fields.items()),
        )


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("ascii")
