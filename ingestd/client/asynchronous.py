"""The client for programs that do other things meanwhile; beside ``await``, the same as in `ingestd.client.blocking`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from ingestd.client.caller import address_of, caller_of
from ingestd.client.content import AsyncSource, Landing, Outgoing
from ingestd.client.errors import error_of, value_of
from ingestd.client.exchange import AsyncExchange, BrokenOff
from ingestd.client.judgement import judgement_for_programs
from ingestd.client.methods import Awaiting
from ingestd.client.reading import entry_of
from ingestd.client.records import Entry, FileInfo, Upload, UploadLink
from ingestd.client.request import Request
from ingestd.client.requests import bytes_of_files
from ingestd.client.requests.sinks import get_sink
from ingestd.client.sink_stream import SinkStream
from ingestd.client.surface import Surface
from ingestd.client.transport import Timeouts, TransportOptions

T = TypeVar("T")


class AsyncClient(Surface, Awaiting):
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
        caller = caller_of(url, api_key, client_id)
        made_with = caller.http_options(timeouts or Timeouts(), options or TransportOptions())
        http = httpx.AsyncClient(**made_with, transport=transport)
        self._exchange = AsyncExchange(caller, judgement_for_programs(), http)
        self.address = address_of(http)
        self.client_id = caller.client_id

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
        """Send a request that a function of `ingestd.client.requests` made.

        Raises:
            ServiceError: there is no success.
            Unaddressable: a name can't stand in a path; nothing was sent.
        """
        return value_of(await self._exchange.reply(request))

    async def iter_entries(self, workspace: str, sink: str) -> AsyncGenerator[Entry]:
        """The entries of a sink of any size, one after the other, in memory for one network chunk.

        An error may come after entries that were given already: what is missing is not known then. Close the generator
        (``contextlib.aclosing``) where you leave it early.
        """
        stream = SinkStream(entry_of)
        try:
            async with self._exchange.open(get_sink(workspace, sink)) as opened:
                async for piece in opened.response.aiter_bytes():
                    for entry in stream.feed(piece):
                        yield entry
                stream.finish()
        except BrokenOff as broken:
            raise error_of(broken.reply) from None

    async def upload_file(
        self,
        workspace_id: str,
        source: AsyncSource,
        *,
        file_name: str | None = None,
        content_type: str | None = None,
        sha256: str | None = None,
        id: str | None = None,  # noqa: A002 - the contract's own name
        client_id: str | None = None,
    ) -> FileInfo:
        """Upload a file in one request, in pieces; with the ``id`` of a file that exists, as its next version.

        ``file_name``: a file's own where none is given. ``sha256``: where it is known already, the service refuses other bytes
        (``Unprocessable``); that the bytes sent are those that arrived is checked in any case.
        """
        outgoing = Outgoing(source)
        request = bytes_of_files.upload(
            workspace_id,
            outgoing,
            file_name=file_name,
            content_type=content_type,
            sha256=sha256,
            id=id,
            client_id=client_id,
        )
        return value_of(await self._exchange.reply(request, outgoing.async_pieces()))

    async def upload_by_link(self, link: UploadLink, source: AsyncSource) -> Upload:
        """Send bytes to where ``create_upload_link`` says; ``complete_upload`` then makes them the file's."""
        outgoing = Outgoing(source)
        request = bytes_of_files.upload_by_link(link, outgoing)
        return value_of(await self._exchange.reply(request, outgoing.async_pieces()))

    async def iter_file(
        self, file: str, *, version_id: str | None = None, output: str | None = None
    ) -> AsyncGenerator[bytes]:
        """The bytes of a file in pieces: as it is, of one of its versions, or an ``output`` of its conversion.

        Close the generator (``contextlib.aclosing``) where you leave it early.
        """
        request = bytes_of_files.download(file, version_id=version_id, output=output)
        try:
            async with self._exchange.open(request) as opened:
                async for piece in opened.response.aiter_bytes():
                    yield piece
        except BrokenOff as broken:
            raise error_of(broken.reply) from None

    async def download_file(
        self, file: str, target: Path, *, version_id: str | None = None, output: str | None = None
    ) -> int:
        """Download a file to ``target``, which is there whole or as it was before; answers the number of bytes."""
        request = bytes_of_files.download(file, version_id=version_id, output=output)
        try:
            async with self._exchange.open(request) as opened:
                with Landing(target) as landing:
                    async for piece in opened.response.aiter_bytes():
                        await asyncio.to_thread(landing.write, piece)
                    return await asyncio.to_thread(landing.settle, opened.response.headers.get("ETag", ""))
        except BrokenOff as broken:
            raise error_of(broken.reply) from None
