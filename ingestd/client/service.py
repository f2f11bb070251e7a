"""The client of the workspace service: one method an operation, each one request and one `Reply`.

None of them raises for what a service or a network can do. Retrying is the caller's decision; redirects are never followed.

The API key goes into one header and nowhere else: no message, repr or event has it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from ingestd.client import decoding, operations
from ingestd.client.faults import fault_of
from ingestd.client.judgement import Judgement
from ingestd.client.operations import Operation, fill
from ingestd.client.reply import Reply
from ingestd.client.resources import BulkResult, Entry, Sink, Workspace
from ingestd.client.sink_stream import Row, SinkStream
from ingestd.core.clock import Now
from ingestd.core.outcome import Fault
from ingestd.wire import names

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")
_ACCEPT = f"{names.JSON}, {names.PROBLEM_JSON}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long each part of a request may stand still, in seconds; a slow but moving transfer is never cut."""

    connect_seconds: float = 5.0
    write_seconds: float = 60.0
    read_seconds: float = 60.0
    pool_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    """Where a request goes beside its operation."""

    names: Mapping[str, str]
    query: Mapping[str, str] | None = None


class ServiceClient:
    """An asynchronous client of one service; close it, or use it as an async context manager.

    ``transport`` takes the place of the network (a test's, or a quicker one). ``now`` is for Retry-After dates.

    Raises:
        ValueError: the key or the client id has characters that can't stand in a header; the text is not repeated.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        client_id: str,
        timeouts: Timeouts | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Now = time.time,
        retry_after_cap_seconds: float = 300.0,
    ) -> None:
        if not _VISIBLE_ASCII.fullmatch(api_key):
            raise ValueError("The API key is empty or has characters that can't stand in an HTTP header.")
        if not _CLIENT_ID.fullmatch(client_id):
            raise ValueError("The client id must be 1 to 128 visible ASCII characters.")
        limits = timeouts or Timeouts()
        self._judgement = Judgement(now=now, retry_after_cap_seconds=retry_after_cap_seconds)
        self._client_id = client_id
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            headers={names.API_KEY: api_key, "Accept": _ACCEPT, "User-Agent": "ingestd"},
            timeout=httpx.Timeout(
                connect=limits.connect_seconds,
                write=limits.write_seconds,
                read=limits.read_seconds,
                pool=limits.pool_seconds,
            ),
            # Servers close idle connections after five seconds and more; leaving first avoids a request into a closing one.
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=3.0),
            follow_redirects=False,
            # Proxies and certificates come from the configuration, not from the environment of whoever starts the daemon.
            trust_env=False,
            transport=transport,
        )
        parts = self._http.base_url
        self.address = f"{parts.scheme}://{parts.netloc.decode('ascii')}"

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
        await self._http.aclose()

    # -------------------------------------------------------------------------------------------- workspaces

    async def list_workspaces(self) -> Reply[tuple[Workspace, ...]]:
        """The workspaces that the key may see; a service that answers with one record has one."""
        return await self._call(operations.LIST_WORKSPACES, _Address(names={}))

    async def get_workspace(self, workspace: str) -> Reply[Workspace]:
        """One workspace by id."""
        return await self._call(operations.GET_WORKSPACE, _Address(names={"workspace": workspace}))

    async def create_workspace(self, label: str) -> Reply[Workspace]:
        """A new workspace; not repeatable, for labels are not unique."""
        body = msgspec.json.encode({"label": label})
        return await self._call(operations.CREATE_WORKSPACE, _Address(names={}), body=body)

    # ------------------------------------------------------------------------------------------------- sinks

    async def list_sinks(self, workspace: str) -> Reply[tuple[Sink, ...]]:
        """Every sink of a workspace, without entries."""
        return await self._call(operations.LIST_SINKS, _Address(names={"workspace": workspace}))

    async def get_sink(self, workspace: str, sink: str) -> Reply[Sink]:
        """A sink with its entries, all in memory; `read_sink` is for large ones."""
        return await self._call(operations.GET_SINK, _sink(workspace, sink))

    async def read_sink(
        self, workspace: str, sink: str, take: Callable[[list[Row]], Awaitable[None]], *, rows_at_once: int = 50_000
    ) -> Reply[int]:
        """Read a sink's entries and hand them to ``take`` in pieces; the value is their number.

        Memory: ``rows_at_once`` rows and one network chunk. What was taken before a fault stays taken: start over then.
        """
        started = time.perf_counter()
        request = self._request(operations.GET_SINK, _sink(workspace, sink), None, {})
        stream, rows, count = SinkStream(), list[Row](), 0
        try:
            response = await self._http.send(request, stream=True)
            try:
                if response.status_code != 200:
                    await response.aread()
                    return self._judgement.reply(operations.GET_SINK, response, started)
                async for piece in response.aiter_bytes():
                    rows += stream.feed(piece)
                    if len(rows) >= rows_at_once:
                        count += len(rows)
                        await take(rows)
                        rows = []
                stream.finish()
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return self._judgement.no_answer(operations.GET_SINK, fault_of(error), started)
        except decoding.Unreadable:
            return self._judgement.no_answer(operations.GET_SINK, Fault.UNREADABLE, started, status=200)
        if rows:
            count += len(rows)
            await take(rows)
        return self._judgement.done(operations.GET_SINK, response, count, started)

    async def create_sink(
        self, workspace: str, *, body: bytes, keys: Sequence[str] = (), idempotency_key: str
    ) -> Reply[Sink]:
        """A new sink. ``body``: the JSON of the create body; ``keys``: of its entries, to check the answer against."""
        return await self._call(
            operations.CREATE_SINK,
            _Address(names={"workspace": workspace}),
            body=body,
            headers={names.IDEMPOTENCY_KEY: idempotency_key},
            check=lambda created: decoding.expect_keys(created, keys),
        )

    async def delete_sink(self, workspace: str, sink: str) -> Reply[None]:
        """Remove a sink with its entries."""
        return await self._call(operations.DELETE_SINK, _sink(workspace, sink))

    # ----------------------------------------------------------------------------------------------- entries

    async def get_entry(self, workspace: str, sink: str, key: str) -> Reply[Entry]:
        """One entry."""
        return await self._call(operations.GET_ENTRY, _entry(workspace, sink, key))

    async def create_entry(
        self, workspace: str, sink: str, *, key: str, body: bytes, idempotency_key: str
    ) -> Reply[Entry]:
        """A new entry. ``body``: ``{"key","value","dataType"}``."""
        return await self._call(
            operations.CREATE_ENTRY,
            _sink(workspace, sink),
            body=body,
            headers={names.IDEMPOTENCY_KEY: idempotency_key},
            check=lambda entry: decoding.expect_key(entry, key),
        )

    async def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str, idempotency_key: str
    ) -> Reply[Entry]:
        """Replace an entry's value: the mass-update as the document has it, key and value and nothing else."""
        return await self._call(
            operations.MASS_UPDATE_ENTRY,
            _sink(workspace, sink),
            body=msgspec.json.encode({"key": key, "value": value}),
            headers={names.IDEMPOTENCY_KEY: idempotency_key},
            check=lambda entry: decoding.expect_key(entry, key),
        )

    async def patch_entry(
        self, workspace: str, sink: str, *, key: str, value: str | None, data_type: str | None
    ) -> Reply[Entry]:
        """Set an entry's value and, where one is given, its data type."""
        body = {"value": value} if data_type is None else {"value": value, "dataType": data_type}
        return await self._call(
            operations.PATCH_ENTRY,
            _entry(workspace, sink, key),
            body=msgspec.json.encode(body),
            check=lambda entry: decoding.expect_key(entry, key),
        )

    async def delete_entry(self, workspace: str, sink: str, *, key: str) -> Reply[None]:
        """Remove an entry."""
        return await self._call(operations.DELETE_ENTRY, _entry(workspace, sink, key))

    async def mass_update(
        self, workspace: str, sink: str, *, body: bytes, items: int, idempotency_key: str, partial: bool = False
    ) -> Reply[BulkResult]:
        """A bulk mass-update (service contract, M3 and M8); only for a service that announces it.

        ``body``: a JSON array of ``items`` items. ``partial``: store the good ones and tell of each what became of it;
        else all or nothing, answered with counts.
        """
        headers = {names.IDEMPOTENCY_KEY: idempotency_key}
        if not partial:
            headers[names.PREFER] = names.RETURN_MINIMAL
        return await self._call(
            operations.MASS_UPDATE,
            _Address(names=_sink(workspace, sink).names, query={"partial": "true"} if partial else None),
            body=body,
            headers=headers,
            check=lambda result: decoding.expect_count(result, items),
        )

    # ----------------------------------------------------------------------------------------------- the way

    def _request(
        self, operation: Operation, address: _Address, body: bytes | None, headers: Mapping[str, str]
    ) -> httpx.Request:
        sent = dict(headers)
        if operation.method != "GET":
            # The document demands it of some rows and knows it of none of the others; harmless there, and it helps an audit.
            sent[names.CLIENT_ID] = self._client_id
        if body is not None:
            sent["Content-Type"] = names.JSON
        return self._http.build_request(
            operation.method, fill(operation, address.names), params=address.query, content=body, headers=sent
        )

    async def _call(
        self,
        operation: Operation,
        address: _Address,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> Reply[Any]:
        request = self._request(operation, address, body, headers or {})
        started = time.perf_counter()
        try:
            response = await self._http.send(request)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return self._judgement.no_answer(operation, fault_of(error), started)
        return self._judgement.reply(operation, response, started, check)


def _sink(workspace: str, sink: str) -> _Address:
    return _Address(names={"workspace": workspace, "sink": sink})


def _entry(workspace: str, sink: str, key: str) -> _Address:
    return _Address(names={"workspace": workspace, "sink": sink, "key": key})
