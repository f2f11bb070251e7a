"""The daemon's client of the service: each method sends one request and returns its `ServiceResponse`.

No method raises for what a service or a network can do, because delivery expects outages. The caller decides about retries.
Programs use `ingestd.client.AsyncClient`: its methods raise errors.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec.structs import replace

from ingestd.client import operations
from ingestd.client.api_key import RenewableKey
from ingestd.client.checks import check_count, check_indexes, check_key, check_listed
from ingestd.client.compression import BodyCompression
from ingestd.client.exchange import AsyncExchange, Exchange, ResponseFailed
from ingestd.client.fast_connection import IdleTimeouts
from ingestd.client.fast_exchange import SMALL_BODY_BYTES, FastExchange
from ingestd.client.fast_transport import FastTransport
from ingestd.client.operations import ApiOperation
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.readers import one_or_many, read_bulk, read_nothing, reader
from ingestd.client.records.summaries import BulkResult, EntrySummary, SinkSummary, WorkspaceSummary
from ingestd.client.request import Request
from ingestd.client.request_builder import RequestBuilder
from ingestd.client.request_counts import RequestCounts
from ingestd.client.response import ServiceResponse
from ingestd.client.server_address import ServerAddress
from ingestd.client.sink_stream import SinkStream
from ingestd.client.transport import Timeouts, TransportOptions, httpx_settings
from ingestd.client.writer import RisingWriter
from ingestd.core.clock import Now
from ingestd.core.outcome import may_take_effect
from ingestd.wire import names
from ingestd.wire.hosts import is_loopback
from ingestd.wire.writer import HEADER as WRITER

T = TypeVar("T")

_ENTRY = reader(EntrySummary)
_SINK = reader(SinkSummary)
_SINKS = reader(tuple[SinkSummary, ...])
_WORKSPACE = reader(WorkspaceSummary)
_WORKSPACES = one_or_many(WorkspaceSummary)
_FENCED = "writer_fenced"
_UNAUTHENTICATED = 401
_MAX_LIST_BYTES = 64 * 1024 * 1024
"""The longest list of workspaces or sinks: some hundred thousand of them."""


class ServiceClient:
    """An asynchronous client of one service; close it, or use it as an async context manager.

    ``transport`` replaces the network in tests. ``now`` returns seconds since the epoch, for dates in `Retry-After`.
    ``clock`` returns seconds, and measures requests. ``read_api_key`` returns the stored key; it is called before the first
    request after a 401, and None keeps the key in use. ``compress``: send large bodies with gzip if the service announces
    that it accepts them, and runs on another machine. ``writer``: the one that each write below a workspace names.

    Raises:
        ValueError: the key or the client id has characters that a header can't hold. The sentence does not repeat them.
        UnusableCertificate: a file of ``options`` can't be used.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        client_id: str,
        timeouts: Timeouts | None = None,
        options: TransportOptions | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Now = time.time,
        clock: Callable[[], float] = time.perf_counter,
        retry_after_cap_seconds: float = 300.0,
        compress: bool = False,
        read_api_key: Callable[[], str | None] = lambda: None,
        counts: RequestCounts | None = None,
        writer: RisingWriter | None = None,
    ) -> None:
        self._writer = writer
        self._key = RenewableKey(api_key, read=read_api_key)
        self._builder = RequestBuilder(key=self._key, client_id=client_id)
        self._parser = OutcomeParser(
            now=now,
            clock=clock,
            retry_after_cap_seconds=retry_after_cap_seconds,
            counts=counts,
            options=options,
        )
        self._url, self._timeouts = url, timeouts or Timeouts()
        self._options, self._transport = options or TransportOptions(), transport
        self._verify = self._options.tls(url)
        parts = urlsplit(url)
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._compression = BodyCompression(enabled=compress and not is_loopback(parts.hostname or ""))

    # httpx is used from the first request on: a sync that finds nothing changed does without it.
    @cached_property
    def _http(self) -> httpx.AsyncClient:
        settings = httpx_settings(self._url, self._timeouts, self._options, verify=self._verify)
        return httpx.AsyncClient(**settings, transport=self._transport)

    @cached_property
    def _exchange(self) -> AsyncExchange:
        return AsyncExchange(self._builder, self._parser, self._http, bounded=True)

    @cached_property
    def _small(self) -> Exchange:
        """The exchange for small requests. It does not need httpx, which takes long to import."""
        if self._transport is not None or self._options.proxy is not None or self._options.from_environment:
            return self._exchange
        address, timeouts = ServerAddress.of(self._url), self._timeouts
        fast = FastTransport(
            address,
            idle_timeouts=IdleTimeouts(write=timeouts.write_seconds, read=timeouts.read_seconds),
            connect_seconds=timeouts.connect_seconds,
            verify=self._verify,
        )
        return FastExchange(self._builder, self._parser, fast, address)

    def prepare(self) -> None:
        """Create the HTTP client now instead of with the first request, for work with a limited time."""
        self._small  # noqa: B018 - a cached property, and so is the exchange that it may use
        self._exchange  # noqa: B018

    def __repr__(self) -> str:
        return f"<ServiceClient of {self.address}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        for opened in ("_small", "_exchange"):
            if opened in self.__dict__:
                await getattr(self, opened).close()

    # -------------------------------------------------------------------------------- workspaces and sinks

    async def list_workspaces(self) -> ServiceResponse[tuple[WorkspaceSummary, ...]]:
        """Return the workspaces that the key may read."""
        return await self._small.send(
            Request(operation=operations.LIST_WORKSPACES, read=_WORKSPACES, max_response_bytes=_MAX_LIST_BYTES)
        )

    async def create_workspace(self, label: str) -> ServiceResponse[WorkspaceSummary]:
        """Create a workspace. A repetition creates another one, because labels are not unique."""
        body = msgspec.json.encode({"label": label})
        return await self._small.send(Request(operation=operations.CREATE_WORKSPACE, read=_WORKSPACE, body=body))

    async def list_sinks(self, workspace: str) -> ServiceResponse[tuple[SinkSummary, ...]]:
        """Return every sink of a workspace, without entries."""
        path = {"workspace": workspace}
        return await self._small.send(
            Request(operation=operations.LIST_SINKS, read=_SINKS, path=path, max_response_bytes=_MAX_LIST_BYTES)
        )

    async def get_sink(self, workspace: str, sink: str) -> ServiceResponse[SinkSummary]:
        """Return a sink with all its entries in memory; `read_sink` reads a large one."""
        return await self._exchange.send(_whole_sink(workspace, sink))

    async def read_sink(
        self,
        workspace: str,
        sink: str,
        take: Callable[[list[T]], Awaitable[None]],
        make: Callable[[Mapping[str, Any]], T],
        *,
        rows_at_once: int = 50_000,
    ) -> ServiceResponse[int]:
        """Pass a sink's entries to ``take``, made by ``make`` (`row_of`, `signed_row_of`), and return their number.

        Memory: ``rows_at_once`` rows and one network chunk. Rows that were passed before a failure stay passed.
        """
        api_key = self._key.current()
        response = await self._read_sink(workspace, sink, take, make, rows_at_once)
        if response.status == _UNAUTHENTICATED and self._key.current() != api_key:
            # A lane repeats a refused request. A reading has no later one, and this may be the first request for days.
            response = await self._read_sink(workspace, sink, take, make, rows_at_once)
        return response

    async def _read_sink(
        self,
        workspace: str,
        sink: str,
        take: Callable[[list[T]], Awaitable[None]],
        make: Callable[[Mapping[str, Any]], T],
        rows_at_once: int,
    ) -> ServiceResponse[int]:
        stream, rows, count = SinkStream(make), list[T](), 0
        try:
            async with self._exchange.open(_whole_sink(workspace, sink)) as opened:
                async for chunk in opened.response.aiter_bytes():
                    rows += stream.feed(chunk)
                    if len(rows) >= rows_at_once:
                        count += len(rows)
                        await take(rows)
                        rows = []
                stream.finish()
        except ResponseFailed as failed:
            return failed.response
        if rows:
            count += len(rows)
            await take(rows)
        response = opened.response
        return self._parser.succeeded(
            operations.GET_SINK, response.status_code, response.headers.raw, count, opened.started
        )

    async def create_sink(
        self, workspace: str, *, body: bytes, keys: Sequence[str] = (), idempotency_key: str
    ) -> ServiceResponse[SinkSummary]:
        """Create a sink. ``body``: the JSON of the request; ``keys``: of its entries, to check the response."""

        def check(created: SinkSummary) -> None:
            if created.entries is not None:
                check_listed((entry.key for entry in created.entries), keys)

        return await self._write(
            Request(
                operation=operations.CREATE_SINK,
                read=_SINK,
                path={"workspace": workspace},
                body=body,
                headers={names.IDEMPOTENCY_KEY: idempotency_key},
                check=check,
            ),
            self._exchange,
        )

    async def fence(self, workspace: str) -> ServiceResponse[None]:
        """Have a service with a writer fence refuse every earlier request to the workspace (service contract M11).

        The request is a write that changes nothing: the outcome has the remedy "missing".
        """
        path = {"workspace": workspace, "sink": str(uuid.UUID(int=0))}
        return await self._write(Request(operation=operations.UPDATE_SINK, read=read_nothing, path=path, body=b"{}"))

    # --------------------------------------------------------------------------------------------- entries

    async def get_entry(self, workspace: str, sink: str, *, key: str) -> ServiceResponse[EntrySummary]:
        """Return an entry."""
        path = {"workspace": workspace, "sink": sink, "key": key}
        return await self._small.send(_entry_request(operations.GET_ENTRY, path, key))

    async def create_entry(
        self, workspace: str, sink: str, *, key: str, body: bytes, idempotency_key: str
    ) -> ServiceResponse[EntrySummary]:
        """Create an entry. ``body``: ``{"key","value","dataType"}``."""
        path = {"workspace": workspace, "sink": sink}
        return await self._write(_entry_request(operations.CREATE_ENTRY, path, key, body, idempotency_key))

    async def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str, idempotency_key: str
    ) -> ServiceResponse[EntrySummary]:
        """Replace an entry's value by the mass update of the interface document, which has a key and a value only."""
        path = {"workspace": workspace, "sink": sink}
        body = msgspec.json.encode({"key": key, "value": value})
        return await self._write(_entry_request(operations.MASS, path, key, body, idempotency_key))

    async def patch_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, data_type: str | None
    ) -> ServiceResponse[EntrySummary]:
        """Set an entry's value, and its data type unless it is None."""
        path = {"workspace": workspace, "sink": sink, "key": key}
        body = msgspec.json.encode({"value": value} if data_type is None else {"value": value, "dataType": data_type})
        return await self._write(_entry_request(operations.UPDATE_ENTRY, path, key, body))

    async def delete_entry(self, workspace: str, sink: str, *, key: str) -> ServiceResponse[None]:
        """Remove an entry."""
        path = {"workspace": workspace, "sink": sink, "key": key}
        return await self._write(Request(operation=operations.DELETE_ENTRY, read=read_nothing, path=path))

    async def mass_update(
        self, workspace: str, sink: str, *, body: bytes, items: int, idempotency_key: str, partial: bool = False
    ) -> ServiceResponse[BulkResult]:
        """Update in bulk (service contract M3, M8). The service has to announce that it accepts this.

        ``body``: a JSON array of ``items`` items. ``partial``: the service stores the valid items, and responds with the
        result of each; otherwise it stores all or none, and responds with counts.
        """

        def check(result: BulkResult) -> None:
            if result.results is not None:
                check_indexes((item.index for item in result.results), items)
            else:
                check_count(result.accepted, items)

        headers = {names.IDEMPOTENCY_KEY: idempotency_key}
        if not partial:
            headers[names.PREFER] = names.RETURN_MINIMAL
        request = Request(
            operation=operations.MASS,
            read=read_bulk,
            path={"workspace": workspace, "sink": sink},
            query={"partial": "true"} if partial else None,
            body=body,
            headers=headers,
            check=check,
        )
        compressed = await self._compression.compressed(request)
        response = await self._write(compressed, self._exchange_for(compressed))
        if compressed is not request and response.status == 415:
            # The service announced gzip. A proxy, or a newer version of the service, does not accept it.
            self._compression.disable()
            return await self._write(request, self._exchange_for(request))
        self._compression.record_response(response)
        return response

    async def _write(self, request: Request[T], exchange: Exchange | None = None) -> ServiceResponse[T]:
        """Send a write with the current writer, and again if another request has raised the writer meanwhile."""
        exchange, writer, workspace = exchange or self._small, self._writer, request.path["workspace"]
        if writer is None:
            return await exchange.send(request)
        while True:
            sent = writer.current
            is_over = False
            try:
                response = await exchange.send(replace(request, headers={**request.headers, WRITER: str(sent)}))
                is_over = not may_take_effect(response.facts)
            finally:
                if not is_over:
                    writer.raise_past(sent)
            if response.ok:
                writer.accept(workspace)
            if response.facts.code != _FENCED or not await writer.is_newer_now(sent, response.writer, workspace):
                return response

    def _exchange_for(self, request: Request[Any]) -> Exchange:
        return self._small if len(request.body or b"") <= SMALL_BODY_BYTES else self._exchange


def _whole_sink(workspace: str, sink: str) -> Request[SinkSummary]:
    return Request(operation=operations.GET_SINK, read=_SINK, path={"workspace": workspace, "sink": sink})


def _entry_request(
    operation: ApiOperation, path: Mapping[str, str], key: str, body: bytes | None = None, idempotency_key: str = ""
) -> Request[EntrySummary]:
    """Return a request about one entry; its response must have the same key."""
    return Request(
        operation=operation,
        read=_ENTRY,
        path=path,
        body=body,
        headers={names.IDEMPOTENCY_KEY: idempotency_key} if idempotency_key else {},
        check=lambda entry: check_key(entry.key, key),
    )
