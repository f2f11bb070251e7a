"""Requests about one entry, straight over a transport: the same requests and judgements, without what a client of httpx adds.

No redirects, cookies, authentication flows or event hooks are wanted here, and all that differs between two entries of a sink
is the Idempotency-Key and the body. So a request is the bytes that stay the same, made once, and those two. An answer becomes
one of httpx only where it is no plain success.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

import httpx

from ingestd.client.caller import Caller, HttpOptions
from ingestd.client.faults import fault_of
from ingestd.client.judgement import Judgement
from ingestd.client.operations import fill
from ingestd.client.quick_connection import Patience
from ingestd.client.quick_transport import QuickTransport, WholeResponse, origin_of
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.wire import names

T = TypeVar("T")

_MOST_HEADS = 256


class QuickExchange:
    """As `AsyncExchange`, for requests without a query and answers that fit into memory and are read by their body alone."""

    def __init__(self, caller: Caller, judgement: Judgement, transport: QuickTransport, made_with: HttpOptions) -> None:
        self._judgement = judgement
        self._transport = transport
        base = httpx.URL(caller.url.rstrip("/"))
        self._origin = origin_of(base)
        self._below = base.raw_path.rstrip(b"/")
        self._host = base.netloc
        self._fields = {**made_with["headers"], names.CLIENT_ID: caller.client_id, "Content-Type": names.JSON}
        self._always = self._begin()
        timeout = made_with["timeout"]
        self._connect_seconds = timeout.connect
        self._patience = Patience(write=timeout.write, read=timeout.read)
        self._heads: OrderedDict[tuple[str, ...], bytes] = OrderedDict()

    async def reply(self, request: Request[T]) -> Reply[T]:
        """Send a request and read its answer to the end."""
        body = request.body or b""
        fields = b"".join([_line(name, value) for name, value in request.headers.items()])
        message = b"%b%bContent-Length: %d\r\n\r\n%b" % (self._head(request), fields, len(body), body)
        started = self._judgement.clock()
        try:
            answer = await self._transport.ask(
                self._origin, message, patience=self._patience, connect_seconds=self._connect_seconds
            )
        except httpx.HTTPError as error:
            return self._judgement.no_answer(request.operation, fault_of(error), started)
        if 200 <= answer.status < 300:
            return self._judgement.success(request, answer.status, answer.body, answer.headers, started)
        return self._judgement.reply(request, WholeResponse(answer), started)

    def use_api_key(self, api_key: str) -> None:
        """Send this key with every request from now on."""
        self._fields[names.API_KEY] = api_key
        self._always = self._begin()
        self._heads.clear()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _begin(self) -> bytes:
        return b"Host: %b\r\n%b" % (self._host, b"".join(_line(*field) for field in self._fields.items()))

    def _head(self, request: Request[T]) -> bytes:
        """What every request of an operation to one address begins with."""
        operation = request.operation
        which = (operation.name, *request.names.values())
        head = self._heads.get(which)
        if head is None:
            path = self._below + fill(operation, request.names).encode("ascii")
            head = b"%b %b HTTP/1.1\r\n%b" % (operation.method.encode("ascii"), path, self._always)
            self._heads[which] = head
            if len(self._heads) > _MOST_HEADS:
                self._heads.popitem(last=False)
        return head


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("ascii")
