"""The daemon's client of the workspace service: one method an operation, each one request and one `Reply`.

None of them raises for what a service or a network can do: an outage is the daily bread of delivery and no surprise.
Retrying is the caller's decision; redirects are never followed. Programs want `ingestd.client.AsyncClient`, whose methods
raise; both send requests of the same table through the same `AsyncExchange`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec

from ingestd.client import decoding, operations
from ingestd.client.caller import Caller, address_of
from ingestd.client.exchange import AsyncExchange, BrokenOff
from ingestd.client.judgement import Judgement
from ingestd.client.key_renewal import KeyRenewal, RenewingExchange
from ingestd.client.packing import Packing, is_loopback
from ingestd.client.quick_exchange import QuickExchange
from ingestd.client.quick_transport import QuickTransport
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.client.resources import BulkResult, Entry, Sink, Workspace
from ingestd.client.sink_stream import Row, SignedRow, SinkStream, row_of, signed_row_of
from ingestd.client.transport import Timeouts, TransportOptions
from ingestd.core.clock import Now
from ingestd.wire import names

T = TypeVar("T")


class ServiceClient:
    """An asynchronous client of one service; close it, or use it as an async context manager.

    ``transport`` takes the place of the network (a test's, or a quicker one). ``now`` is for Retry-After dates; ``clock``
    measures how long requests take, in seconds.
    ``read_api_key`` is asked for the key before the first request after a 401; None: the key stays.
    ``compress``: send large bodies by gzip where the service announces that it takes them, and is not on this machine.

    Raises:
        ValueError: the key or the client id has characters that can't stand in a header; the text is not repeated.
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
    ) -> None:
        caller = Caller(url=url, api_key=api_key, client_id=client_id)
        made_with = caller.http_options(timeouts or Timeouts(), options or TransportOptions())
        http = httpx.AsyncClient(**made_with, transport=transport)
        self._judgement = Judgement(now=now, clock=clock, retry_after_cap_seconds=retry_after_cap_seconds)
        self._key = KeyRenewal(api_key, read=read_api_key)
        self._exchange = RenewingExchange(AsyncExchange(caller, self._judgement, http), self._key)
        self._entries = self._exchange
        if transport is None and made_with["proxy"] is None and not made_with["trust_env"]:
            quick = QuickTransport(verify=made_with["verify"])
            self._entries = RenewingExchange(QuickExchange(caller, self._judgement, quick, made_with), self._key)
        self.address = address_of(http)
        self._packing = Packing(wanted=compress and not is_loopback(http.base_url.host))

    def __repr__(self) -> str:
        return f"<ServiceClient of {self.address}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def use_api_key(self, api_key: str) -> bool:
        """Send ``api_key`` from now on; return False if that is the key in use.

        Raises:
            ValueError: it has characters that can't be sent in a header; the key in use stays.
        """
        Caller(url="", api_key=api_key, client_id="-")
        return self._key.use(api_key)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._entries.close()
        await self._exchange.close()

    # -------------------------------------------------------------------------------------------- workspaces

    async def list_workspaces(self) -> Reply[tuple[Workspace, ...]]:
        """The workspaces that the key may see; a service that answers with one record has one."""
        return await self._exchange.reply(Request(operation=operations.LIST_WORKSPACES, read=decoding.workspaces))

    async def get_workspace(self, workspace: str) -> Reply[Workspace]:
        """One workspace by id."""
        return await self._exchange.reply(
            Request(operation=operations.GET_WORKSPACE, read=decoding.workspace, names={"workspace": workspace})
        )

    async def create_workspace(self, label: str) -> Reply[Workspace]:
        """A new workspace; not repeatable, for labels are not unique."""
        body = msgspec.json.encode({"label": label})
        return await self._exchange.reply(
            Request(operation=operations.CREATE_WORKSPACE, read=decoding.workspace, body=body)
        )

    # ------------------------------------------------------------------------------------------------- sinks

    async def list_sinks(self, workspace: str) -> Reply[tuple[Sink, ...]]:
        """Every sink of a workspace, without entries."""
        return await self._exchange.reply(
            Request(operation=operations.LIST_SINKS, read=decoding.sinks, names={"workspace": workspace})
        )

    async def get_sink(self, workspace: str, sink: str) -> Reply[Sink]:
        """A sink with its entries, all in memory; `read_sink` is for large ones."""
        return await self._exchange.reply(_whole_sink(workspace, sink))

    async def read_sink(
        self, workspace: str, sink: str, take: Callable[[list[Row]], Awaitable[None]], *, rows_at_once: int = 50_000
    ) -> Reply[int]:
        """Read a sink's entries and hand them to ``take`` in pieces; the value is their number.

        Memory: ``rows_at_once`` rows and one network chunk. What was taken before a fault stays taken: start over then.
        """
        return await self._read_rows(workspace, sink, row_of, take, rows_at_once)

    async def read_signed_sink(
        self,
        workspace: str,
        sink: str,
        take: Callable[[list[SignedRow]], Awaitable[None]],
        *,
        rows_at_once: int = 50_000,
    ) -> Reply[int]:
        """As `read_sink`, with who wrote each entry."""
        return await self._read_rows(workspace, sink, signed_row_of, take, rows_at_once)

    async def _read_rows(
        self,
        workspace: str,
        sink: str,
        make: Callable[[Mapping[str, Any]], T],
        take: Callable[[list[T]], Awaitable[None]],
        rows_at_once: int,
    ) -> Reply[int]:
        stream, rows, count = SinkStream(make), list[T](), 0
        try:
            async with self._exchange.open(_whole_sink(workspace, sink)) as opened:
                async for piece in opened.response.aiter_bytes():
                    rows += stream.feed(piece)
                    if len(rows) >= rows_at_once:
                        count += len(rows)
                        await take(rows)
                        rows = []
                stream.finish()
        except BrokenOff as broken:
            return broken.reply
        if rows:
            count += len(rows)
            await take(rows)
        return self._judgement.done(operations.GET_SINK, opened.response, count, opened.started)

    async def create_sink(
        self, workspace: str, *, body: bytes, keys: Sequence[str] = (), idempotency_key: str
    ) -> Reply[Sink]:
        """A new sink. ``body``: the JSON of the create body; ``keys``: of its entries, to check the answer against."""
        return await self._exchange.reply(
            Request(
                operation=operations.CREATE_SINK,
                read=decoding.sink,
                names={"workspace": workspace},
                body=body,
                headers={names.IDEMPOTENCY_KEY: idempotency_key},
                check=lambda created: decoding.expect_keys(created, keys),
            )
        )

    async def delete_sink(self, workspace: str, sink: str) -> Reply[None]:
        """Remove a sink with its entries."""
        return await self._exchange.reply(
            Request(operation=operations.DELETE_SINK, read=decoding.nothing, names=_sink(workspace, sink))
        )

    # ----------------------------------------------------------------------------------------------- entries

    async def get_entry(self, workspace: str, sink: str, key: str) -> Reply[Entry]:
        """One entry."""
        return await self._exchange.reply(
            Request(operation=operations.GET_ENTRY, read=decoding.entry, names=_entry(workspace, sink, key))
        )

    async def create_entry(
        self, workspace: str, sink: str, *, key: str, body: bytes, idempotency_key: str
    ) -> Reply[Entry]:
        """A new entry. ``body``: ``{"key","value","dataType"}``."""
        return await self._entries.reply(
            Request(
                operation=operations.CREATE_ENTRY,
                read=decoding.entry,
                names=_sink(workspace, sink),
                body=body,
                headers={names.IDEMPOTENCY_KEY: idempotency_key},
                check=lambda entry: decoding.expect_key(entry, key),
            )
        )

    async def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str, idempotency_key: str
    ) -> Reply[Entry]:
        """Replace an entry's value: the mass-update as the document has it, key and value and nothing else."""
        return await self._entries.reply(
            Request(
                operation=operations.MASS,
                read=decoding.entry,
                names=_sink(workspace, sink),
                body=msgspec.json.encode({"key": key, "value": value}),
                headers={names.IDEMPOTENCY_KEY: idempotency_key},
                check=lambda entry: decoding.expect_key(entry, key),
            )
        )

    async def patch_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, data_type: str | None
    ) -> Reply[Entry]:
        """Set an entry's value and, where one is given, its data type."""
        body = {"value": value} if data_type is None else {"value": value, "dataType": data_type}
        return await self._entries.reply(
            Request(
                operation=operations.UPDATE_ENTRY,
                read=decoding.entry,
                names=_entry(workspace, sink, key),
                body=msgspec.json.encode(body),
                check=lambda entry: decoding.expect_key(entry, key),
            )
        )

    async def delete_entry(self, workspace: str, sink: str, *, key: str) -> Reply[None]:
        """Remove an entry."""
        return await self._entries.reply(
            Request(operation=operations.DELETE_ENTRY, read=decoding.nothing, names=_entry(workspace, sink, key))
        )

    async def mass_update(
        self, workspace: str, sink: str, *, body: bytes, items: int, idempotency_key: str, partial: bool = False
    ) -> Reply[BulkResult]:
        """A bulk mass-update (service contract M3, M8); only for a service that announces it.

        ``body``: a JSON array of ``items`` items. ``partial``: store the good ones and tell of each what became of it;
        else all or nothing, answered with counts.
        """
        headers = {names.IDEMPOTENCY_KEY: idempotency_key}
        if not partial:
            headers[names.PREFER] = names.RETURN_MINIMAL
        request = Request(
            operation=operations.MASS,
            read=decoding.bulk,
            names=_sink(workspace, sink),
            query={"partial": "true"} if partial else None,
            body=body,
            headers=headers,
            check=lambda result: decoding.expect_count(result, items),
        )
        packed = await self._packing.packed(request)
        reply = await self._exchange.reply(packed)
        if packed is not request and reply.status == 415:
            # It took gzip a moment ago; something on the way, or a newer service, does not.
            self._packing.refused()
            return await self._exchange.reply(request)
        self._packing.heard(reply)
        return reply


def _whole_sink(workspace: str, sink: str) -> Request[Sink]:
    return Request(operation=operations.GET_SINK, read=decoding.sink, names=_sink(workspace, sink))


def _sink(workspace: str, sink: str) -> dict[str, str]:
    return {"workspace": workspace, "sink": sink}


def _entry(workspace: str, sink: str, key: str) -> dict[str, str]:
    return {"workspace": workspace, "sink": sink, "key": key}
