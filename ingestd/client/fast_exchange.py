"""Small requests over the fast transport: the same requests and responses as `AsyncExchange`, for less time.

Two requests about entries of one sink differ only in a few headers and the body. So the head of the request is
built once per sink and reused. Redirects, cookies, authentication flows and event hooks of httpx are not needed here.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx

from ingestd.client.fast_transport import FastTransport
from ingestd.client.operations import fill_path
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.request import Request
from ingestd.client.request_builder import BASE_HEADERS, RequestBuilder
from ingestd.client.response import ServiceResponse
from ingestd.client.server_address import ServerAddress
from ingestd.wire import names

T = TypeVar("T")

SMALL_BODY_BYTES = 64 * 1024
"""A larger body takes longer to send and to store than any exchange takes for its request."""

_MAX_HEADS = 256


class FastExchange:
    """An `Exchange` for requests with responses that are read by the body alone, whole and into memory."""

    def __init__(
        self, builder: RequestBuilder, parser: OutcomeParser, transport: FastTransport, address: ServerAddress
    ) -> None:
        self._builder = builder
        self._parser = parser
        self._transport = transport
        self._address = address
        self._heads: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._use(builder.key.current())

    async def send(self, request: Request[T]) -> ServiceResponse[T]:
        """See `Exchange.send`."""
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

    async def close(self) -> None:
        """See `Exchange.close`."""
        self._transport.close()

    def _head(self, request: Request[Any]) -> bytes:
        """Return the part that all requests of one operation to one path share."""
        api_key = self._builder.key.current()
        if api_key is not self._api_key:
            self._use(api_key)
        operation = request.operation
        query = urlencode(request.query) if request.query else ""
        which = (operation.name, *request.path.values(), query)
        head = self._heads.get(which)
        if head is None:
            path = fill_path(operation, request.path)
            target = self._address.prefix + (f"{path}?{query}" if query else path).encode("ascii")
            head = b"%b %b HTTP/1.1\r\n%b" % (operation.method.encode("ascii"), target, self._fields)
            self._heads[which] = head
            if len(self._heads) > _MAX_HEADS:
                self._heads.popitem(last=False)
        return head

    def _use(self, api_key: str | None) -> None:
        self._api_key = api_key
        self._heads.clear()
        fields = {**BASE_HEADERS, names.CLIENT_ID: self._builder.client_id, "Content-Type": names.JSON}
        if api_key is not None:
            fields[names.API_KEY] = api_key
        self._fields = b"Host: %b\r\n%b" % (
            self._address.host_header,
            b"".join(_line(*field) for field in fields.items()),
        )


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("ascii")
