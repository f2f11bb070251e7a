"""The client for asynchronous programs; except for ``await``, the same as `ingestd.client.blocking_client`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ingestd.client.api_key import RenewableKey
from ingestd.client.content import AtomicDownload
from ingestd.client.errors import error_of, value_of
from ingestd.client.exchange import AsyncExchange, ResponseFailed
from ingestd.client.methods import AsyncSender
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.request import Request
from ingestd.client.request_builder import RequestBuilder, address_of
from ingestd.client.requests import ServiceMethods
from ingestd.client.requests.files import download
from ingestd.client.transport import Timeouts, TransportOptions, httpx_settings

T = TypeVar("T")


class AsyncClient(ServiceMethods, AsyncSender):
    """An asynchronous client of one service; close it, or use it as an async context manager. See `Client`."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        client_id: str | None = None,
        timeouts: Timeouts | None = None,
        options: TransportOptions | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.client_id = client_id or f"client-{secrets.token_hex(6)}"
        builder = RequestBuilder(key=RenewableKey(api_key), client_id=self.client_id)
        http = httpx.AsyncClient(**httpx_settings(url, timeouts, options), transport=transport)
        parser = OutcomeParser(options=options)
        self._exchange = AsyncExchange(builder, parser, http)
        self.address = address_of(http)

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.address}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def send(self, request: Request[T]) -> T:
        """See `BlockingSender.send`."""
        return value_of(await self._exchange.send(request))

    @asynccontextmanager
    async def open(self, request: Request[Any]) -> AsyncIterator[httpx.Response]:
        """See `BlockingSender.open`."""
        try:
            async with self._exchange.open(request) as opened:
                yield opened.response
        except ResponseFailed as failed:
            raise error_of(failed.response) from None

    async def download_file(
        self, file: str, target: Path, *, version_id: str | None = None, output: str | None = None
    ) -> int:
        """Download a file and return its size in bytes. A failed download leaves ``target`` as it was."""
        async with self.open(download(file, version_id=version_id, output=output)) as response:
            with AtomicDownload(target) as to:
                async for chunk in response.aiter_bytes():
                    await asyncio.to_thread(to.write, chunk)
                return await asyncio.to_thread(to.commit, response.headers.get("ETag", ""))
