"""The daemon's client of the service: each method sends one request and returns its `ServiceResponse`.

No method raises an error if the service or the network fails, because delivery expects outages. The caller decides about
retries. Other programs use `ingestd.client.AsyncClient`, which raises errors.
"""

from __future__ import annotations

import asyncio
import gzip
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx
from msgspec import UNSET
from msgspec.structs import replace

from ingestd.client.addresses import sinks_request, workspaces_request
from ingestd.client.bodies import check_count, check_indexes, check_key, check_listed, check_value
from ingestd.client.errors import ServiceError
from ingestd.client.exchange import AsyncExchange
from ingestd.client.fast_exchange import SMALL_BODY_BYTES, FastExchange
from ingestd.client.fast_transport import FastTransport, ServerAddress
from ingestd.client.methods import Method
from ingestd.client.operations import ServiceMethods
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.readers import read_bulk, reader
from ingestd.client.records import BulkResult, EntrySummary, SinkSummary, WorkspaceSummary, WrittenEntry
from ingestd.client.request import Read, Request
from ingestd.client.request_builder import RenewableKey, RequestBuilder
from ingestd.client.response import ServiceResponse
from ingestd.client.sink_stream import SinkStream
from ingestd.client.transport import Timeouts, TransportOptions, httpx_settings
from ingestd.client.writer import RisingWriter
from ingestd.core.clock import Now
from ingestd.core.outcome import may_take_effect
from ingestd.telemetry.request_counts import RequestCounts
from ingestd.wire import names
from ingestd.wire.hosts import is_loopback
from ingestd.wire.writer import HEADER as WRITER

T = TypeVar("T")

_ENTRY: Read[EntrySummary] = reader(EntrySummary)
_WRITTEN: Read[WrittenEntry] = reader(WrittenEntry)
_SINK: Read[SinkSummary] = reader(SinkSummary)
_WORKSPACE: Read[WorkspaceSummary] = reader(WorkspaceSummary)
_FENCED = "writer_fenced"
_MIN_COMPRESSED_BYTES = 4 * 1024
"""Compressing a smaller body takes longer than sending it uncompressed."""

_COMPRESSION_LEVEL = 1
_UNAUTHENTICATED = 401


class ServiceClient:
    """An asynchronous client of one service; close it, or use it as an async context manager.

    ``transport`` replaces the network in tests. ``now`` returns seconds since the epoch, for dates in `Retry-After`. ``clock``
    returns seconds, and measures requests. ``read_api_key`` returns the stored key; it is called before the first request after
    a 401, and None keeps the key in use. ``compress``: send large bodies with gzip if the service announces that it accepts
    gzip, and runs on another machine. ``writer``: the writer that each write below a workspace names.

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
            now=now, clock=clock, retry_after_cap_seconds=retry_after_cap_seconds, counts=counts, options=options
        )
        self._url, self._timeouts = url, timeouts or Timeouts()
        self._options, self._transport = options or TransportOptions(), transport
        self._verify = self._options.tls(url)
        parts = urlsplit(url)
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._may_compress = compress and not is_loopback(parts.hostname or "")
        self._takes_gzip = False

    # Created with the first request, because a sync without changes does not need httpx.
    @cached_property
    def _exchange(self) -> AsyncExchange:
        settings = httpx_settings(self._url, self._timeouts, self._options, verify=self._verify)
        http = httpx.AsyncClient(**settings, transport=self._transport)
        return AsyncExchange(self._builder, self._parser, http, bounded=True)

    @cached_property
    def _small(self) -> AsyncExchange | FastExchange:
        """The exchange for small requests. It does not need httpx, which takes long to import."""
        if self._transport is not None or self._options.proxy is not None:
            return self._exchange
        transport = FastTransport(ServerAddress.of(self._url), self._timeouts, verify=self._verify)
        return FastExchange(self._builder, self._parser, transport)

    def prepare(self) -> None:
        """Create the HTTP clients now, so that the first request, which may have a time limit, need not wait for them."""
        self._small  # noqa: B018 - a cached property, and so is the exchange that it may use
        self._exchange  # noqa: B018

    def __repr__(self) -> str:
        return f"<ServiceClient of {self.address}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        for opened in ("_small", "_exchange"):
            if opened in self.__dict__:
                await getattr(self, opened).aclose()

    async def send(self, request: Request[T]) -> ServiceResponse[T]:
        """Send a small request for an operation that has no method in this class."""
        return await self._small.send(request)

    # -------------------------------------------------------------------------------- workspaces and sinks

    async def list_workspaces(self) -> ServiceResponse[tuple[WorkspaceSummary, ...]]:
        """Return the workspaces that the key may read."""
        return await self._small.send(workspaces_request())

    async def create_workspace(self, label: str) -> ServiceResponse[WorkspaceSummary]:
        """Create a workspace. If the request is repeated, a second workspace is created, because labels are not unique."""
        return await self._small.send(_read_as(ServiceMethods.create_workspace.build(label), _WORKSPACE))

    async def list_sinks(self, workspace: str) -> ServiceResponse[tuple[SinkSummary, ...]]:
        """Return every sink of a workspace, without entries."""
        return await self._small.send(sinks_request(workspace))

    async def get_sink(self, workspace: str, sink: str) -> ServiceResponse[SinkSummary]:
        """Return a sink with all its entries in memory; `read_sink` reads a large sink."""
        return await self._small.send(_read_as(ServiceMethods.get_sink.build(workspace, sink), _SINK))

    async def has_sink(self, workspace: str, sink: str) -> ServiceResponse[None]:
        """Ask whether the service has a sink. A service that supports If-None-Match responds without entries (contract G17)."""
        request = ServiceMethods.get_sink.build(workspace, sink, if_none_match="*")
        asked: Request[None] = _read_as(request, lambda _body, _headers: None)
        return await self._small.send(replace(asked, accepts_unchanged=True))

    async def read_sink(
        self,
        workspace: str,
        sink: str,
        take: Callable[[list[T]], Awaitable[None]],
        make: Callable[[Mapping[str, Any]], T],
        *,
        rows_at_once: int = 50_000,
    ) -> ServiceResponse[int]:
        """Convert a sink's entries with ``make`` (`row_of`, `signed_row_of`), pass them to ``take``, and return their number.

        Memory: ``rows_at_once`` rows and one network chunk. If the reading fails, some rows may have been passed already.
        """
        stream, rows, count, api_key = SinkStream(make), list[T](), 0, self._key.current()
        request, started = ServiceMethods.get_sink.build(workspace, sink), self._parser.clock()
        try:
            async with self._exchange.open(request) as response:
                async for chunk in response.aiter_bytes():
                    rows += stream.feed(chunk)
                    if len(rows) >= rows_at_once:
                        count += len(rows)
                        await take(rows)
                        rows = []
                stream.finish()
        except ServiceError as error:
            if error.status == _UNAUTHENTICATED and self._key.current() != api_key:
                # The key was replaced. A lane would repeat its request later, but no caller repeats the reading of a sink. This
                # may be the first request for days, so the key may have been replaced long ago.
                return await self.read_sink(workspace, sink, take, make, rows_at_once=rows_at_once)
            return error.response
        if rows:
            count += len(rows)
            await take(rows)
        read = _read_as(request, lambda _body, _headers: count)
        return self._parser.parse(read, response.status_code, response.headers.raw, b"", started=started)

    async def create_sink(
        self, workspace: str, *, body: bytes, keys: Sequence[str] = (), idempotency_key: str
    ) -> ServiceResponse[SinkSummary]:
        """Create a sink. ``body``: the JSON of the request; ``keys``: the keys of its entries, to check the response."""

        def check(created: SinkSummary) -> None:
            if created.entries is not None:
                check_listed((entry.key for entry in created.entries), keys)

        request = ServiceMethods.create_sink.encoded(body, workspace, idempotency_key=idempotency_key)
        return await self._write(_read_as(request, _SINK, check), self._exchange)

    async def fence(self, workspace: str) -> ServiceResponse[None]:
        """Make a service with a writer fence refuse every earlier request to the workspace (service contract M11).

        The request is a write to a sink that does not exist. So it changes nothing, and the remedy is "missing".
        """
        return await self._write(ServiceMethods.update_sink.build(workspace, str(uuid.UUID(int=0))))

    # --------------------------------------------------------------------------------------------- entries

    async def get_entry(self, workspace: str, sink: str, *, key: str) -> ServiceResponse[EntrySummary]:
        """Return an entry."""
        request = ServiceMethods.get_entry.build(workspace, sink, key)
        return await self._small.send(_read_as(request, _ENTRY, lambda entry: check_key(entry.key, key)))

    async def create_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, body: bytes, idempotency_key: str
    ) -> ServiceResponse[WrittenEntry]:
        """Create an entry.

        ``key``, ``value``: the entry's key and value, to check the response. ``body``: ``{"key","value","dataType"}``, and
        ``origin`` if the service accepts origins.
        """
        request = ServiceMethods.create_entry.encoded(body, workspace, sink, idempotency_key=idempotency_key)
        return await self._write(_written_as(request, key, value))

    async def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, body: bytes, idempotency_key: str
    ) -> ServiceResponse[WrittenEntry]:
        """Replace an entry's value by the mass update of the interface document, which has only a key and a value.

        ``key``, ``value``: the entry's key and value, to check the response. ``body``: ``{"key","value"}``, and ``origin`` if
        the service accepts origins.
        """
        request = ServiceMethods.mass_update_entry.encoded(body, workspace, sink, idempotency_key=idempotency_key)
        return await self._write(_written_as(request, key, value))

    async def patch_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, data_type: str | None
    ) -> ServiceResponse[WrittenEntry]:
        """Set an entry's value. Set its data type, too, unless ``data_type`` is None."""
        kept = UNSET if data_type is None else data_type
        request = ServiceMethods.update_entry.build(workspace, sink, key, value=value, data_type=kept)
        return await self._write(_written_as(request, key, value))

    async def delete_entry(self, workspace: str, sink: str, *, key: str) -> ServiceResponse[None]:
        """Remove an entry."""
        return await self._write(ServiceMethods.delete_entry.build(workspace, sink, key))

    async def mass_update(
        self, workspace: str, sink: str, *, body: bytes, items: int, idempotency_key: str, partial: bool = False
    ) -> ServiceResponse[BulkResult]:
        """Update in bulk (service contract M3, M8). Only for a service that announces bulk updates.

        ``body``: a JSON array of ``items`` items, or an object with ``entries`` and ``origins``. ``partial``: the service
        stores the valid items, and responds with the result of each item. If False, the service stores all items or none, and
        responds with counts.
        """

        def check(result: BulkResult) -> None:
            if result.results is not None:
                check_indexes((item.index for item in result.results), items)
            else:
                check_count(result.accepted, items)

        methods: tuple[Method[..., Any], ...] = ServiceMethods.mass_update_minimal, ServiceMethods.mass_update_partial
        encoded = methods[partial].encoded(body, workspace, sink, idempotency_key=idempotency_key)
        request = _read_as(encoded, read_bulk, check)
        compressed = request
        if self._may_compress and self._takes_gzip and len(body) >= _MIN_COMPRESSED_BYTES:
            packed = await asyncio.to_thread(gzip.compress, body, _COMPRESSION_LEVEL, mtime=0)
            compressed = replace(request, body=packed, headers={**request.headers, names.CONTENT_ENCODING: "gzip"})
        response = await self._write(compressed)
        if compressed is not request and response.status == 415:
            # The service announced gzip, but a proxy, or another version of the service, does not accept it.
            self._may_compress = False
            return await self._write(request)
        if response.ok:
            self._takes_gzip = response.takes_gzip
        return response

    async def _write(self, request: Request[T], exchange: AsyncExchange | None = None) -> ServiceResponse[T]:
        """Send a write with the current writer. If it is refused as late, send it again if a newer writer may be used."""
        chosen = exchange or (self._small if len(request.body or b"") <= SMALL_BODY_BYTES else self._exchange)
        writer, workspace = self._writer, request.names["workspace"]
        if writer is None:
            return await chosen.send(request)
        while True:
            await writer.permit()
            sent = writer.current
            is_over = False
            try:
                response = await chosen.send(replace(request, headers={**request.headers, WRITER: str(sent)}))
                is_over = not may_take_effect(response.facts)
            finally:
                if not is_over:
                    writer.raise_past(sent)
            if response.ok:
                writer.accept(workspace)
            if response.facts.code != _FENCED or not await writer.is_newer_now(sent, response.writer, workspace):
                return response


def _read_as(request: Request[Any], read: Read[T], check: Callable[[T], None] | None = None) -> Request[T]:
    """Return a declared request with the reader ``read``, which requires only the members that the daemon needs."""
    return replace(request, read=read, check=check)


def _written_as(request: Request[Any], key: str, value: str | None) -> Request[WrittenEntry]:
    """Return a request that writes one entry. Its response must have the key ``key``, and no value or the value ``value``."""

    def check(entry: WrittenEntry) -> None:
        check_key(entry.key, key)
        check_value(entry.value, value)

    return _read_as(request, _WRITTEN, check)
