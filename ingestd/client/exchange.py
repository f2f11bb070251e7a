"""Exchanges over httpx, asynchronous and blocking: each sends a request and reads the response.

Sending raises no error for failures of the service or the network: the response reports them. `FastExchange` is a third
implementation, for small requests.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx

from ingestd.client.errors import error_of
from ingestd.client.outcome_parser import CONTENT_ERRORS, OutcomeParser, transport_errors
from ingestd.client.request import Request
from ingestd.client.request_builder import RequestBuilder
from ingestd.client.response import MAX_BODY_BYTES, ServiceResponse

T = TypeVar("T")

_UNAUTHENTICATED = 401


class _HttpxExchange:
    """The base class of both exchanges over httpx."""

    def __init__(self, builder: RequestBuilder, parser: OutcomeParser) -> None:
        self._builder = builder
        self._parser = parser
        self.client_id = builder.client_id

    def _parse(self, request: Request[T], response: httpx.Response, body: bytes, started: float) -> ServiceResponse[T]:
        status, headers = response.status_code, response.headers
        if status == _UNAUTHENTICATED:
            self._builder.key.reject()
        return self._parser.parse(request, status, headers.raw, body, started=started, headers=headers)


class AsyncExchange(_HttpxExchange):
    """The exchange over ``httpx.AsyncClient``. ``bounded``: `Request.max_response_bytes` applies."""

    def __init__(
        self, builder: RequestBuilder, parser: OutcomeParser, http: httpx.AsyncClient, *, bounded: bool = False
    ) -> None:
        super().__init__(builder, parser)
        self._http = http
        self._bounded = bounded

    async def send(self, request: Request[T]) -> ServiceResponse[T]:
        """Send a request and read its response to the end.

        Raises:
            Unaddressable: a name can't be a segment of a path. Nothing was sent.
        """
        message = self._builder.build(self._http, request)
        started = self._parser.clock()
        most = request.max_response_bytes if self._bounded else sys.maxsize
        try:
            response = await self._http.send(message, stream=True)
            try:
                body = await _read(response, most)
            finally:
                await _close(response)
            if len(body) > most:
                raise httpx.ReadError("the response is larger than any valid response to such a request")
        except transport_errors() as error:
            return self._parser.failed(request.operation, error, started)
        return self._parse(request, response, body, started)

    @asynccontextmanager
    async def open(self, request: Request[Any]) -> AsyncIterator[httpx.Response]:
        """Send a request and yield a successful response before its body is read. The response is closed with the context.

        Raises:
            ServiceError: the service refuses or does not respond, or the content of the response can't be used.
            Unaddressable: a name can't be a segment of a path. Nothing was sent.
        """
        message = self._builder.build(self._http, request)
        started = self._parser.clock()
        try:
            response = await self._http.send(message, stream=True)
            try:
                if not response.is_success:
                    body = await _read(response, MAX_BODY_BYTES)
                    raise error_of(self._parse(request, response, body, started))
                yield response
            finally:
                await _close(response)
        except transport_errors() as error:
            raise error_of(self._parser.failed(request.operation, error, started)) from None
        except CONTENT_ERRORS as error:
            raise error_of(self._parser.failed(request.operation, error, started, status=200)) from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


async def _close(response: httpx.Response) -> None:
    """Close a response, and release its request."""
    try:
        await response.aclose()
    finally:
        _release(response)


def _release(response: httpx.Response) -> None:
    """Break the reference cycle of a closed response, so that its request and the request's body are freed.

    In httpx, the response refers to its stream, and the stream to the response. Without this function, the bodies of hundreds
    of requests stay in memory until Python searches for reference cycles.
    """
    response.stream = httpx.ByteStream(b"")


async def _read(response: httpx.Response, most: int) -> bytes:
    """Return the body. After more than ``most`` bytes, stop reading, and return the part that was read."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            break
    return bytes(body)


class BlockingExchange(_HttpxExchange):
    """The exchange over ``httpx.Client``."""

    def __init__(self, builder: RequestBuilder, parser: OutcomeParser, http: httpx.Client) -> None:
        super().__init__(builder, parser)
        self._http = http

    def send(self, request: Request[T]) -> ServiceResponse[T]:
        """See `AsyncExchange.send`."""
        message = self._builder.build(self._http, request)
        started = self._parser.clock()
        try:
            response = self._http.send(message)
        except transport_errors() as error:
            return self._parser.failed(request.operation, error, started)
        _release(response)
        return self._parse(request, response, response.content, started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
