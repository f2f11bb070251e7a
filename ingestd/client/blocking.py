"""The client for programs that wait for each answer.

::

    with Client("http://127.0.0.1:8400", api_key=key) as client:
        for sink in client.iter_sinks(workspace):
            print(sink.label, sink.visible_id)

What comes back is a whole record; what goes wrong is a `ServiceError`. Nothing is retried and no redirect is followed.
Requests are built, sent and judged as those of the daemon's `ServiceClient`; this layer only makes an error of a reply that
is no success. Most methods are listed in `ingestd.client.surface`; here are those that read or write in pieces.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from ingestd.client.caller import address_of, caller_of
from ingestd.client.content import Landing, Outgoing, Source
from ingestd.client.errors import error_of, value_of
from ingestd.client.exchange import BlockingExchange, BrokenOff
from ingestd.client.judgement import judgement_for_programs
from ingestd.client.methods import Blocking
from ingestd.client.reading import entry_of
from ingestd.client.records import Entry, FileInfo, Upload, UploadLink
from ingestd.client.request import Request
from ingestd.client.requests import bytes_of_files
from ingestd.client.requests.sinks import get_sink
from ingestd.client.sink_stream import SinkStream
from ingestd.client.surface import Surface
from ingestd.client.transport import Timeouts, TransportOptions

T = TypeVar("T")


class Client(Surface, Blocking):
    """A blocking client of one service; close it, or use it as a context manager. Threads may share it.

    ``api_key`` None: only what everybody may read. ``client_id`` names this instance in audit log and events; made up where
    none is given. ``transport`` takes the place of the network.

    Raises:
        ValueError: the key or the client id has characters that can't stand in a header; the text is not repeated.
        UnusableCertificate: a file of ``options`` can't be used.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        client_id: str | None = None,
        timeouts: Timeouts | None = None,
        options: TransportOptions | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        caller = caller_of(url, api_key, client_id)
        made_with = caller.http_options(timeouts or Timeouts(), options or TransportOptions())
        http = httpx.Client(**made_with, transport=transport)
        self._exchange = BlockingExchange(caller, judgement_for_programs(), http)
        self.address = address_of(http)
        self.client_id = caller.client_id

    def __repr__(self) -> str:
        return f"<Client of {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._exchange.close()

    def send(self, request: Request[T]) -> T:
        """Send a request that a function of `ingestd.client.requests` made.

        Raises:
            ServiceError: there is no success.
            Unaddressable: a name can't stand in a path; nothing was sent.
        """
        return value_of(self._exchange.reply(request))

    def iter_entries(self, workspace: str, sink: str) -> Generator[Entry]:
        """The entries of a sink of any size, one after the other, in memory for one network chunk.

        An error may come after entries that were given already: what is missing is not known then. Close the generator
        (``contextlib.closing``) where you leave it early.
        """
        stream = SinkStream(entry_of)
        try:
            with self._exchange.open(get_sink(workspace, sink)) as opened:
                for piece in opened.response.iter_bytes():
                    yield from stream.feed(piece)
                stream.finish()
        except BrokenOff as broken:
            raise error_of(broken.reply) from None

    def upload_file(
        self,
        workspace_id: str,
        source: Source,
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
        return value_of(self._exchange.reply(request, outgoing.pieces()))

    def upload_by_link(self, link: UploadLink, source: Source) -> Upload:
        """Send bytes to where ``create_upload_link`` says; ``complete_upload`` then makes them the file's."""
        outgoing = Outgoing(source)
        request = bytes_of_files.upload_by_link(link, outgoing)
        return value_of(self._exchange.reply(request, outgoing.pieces()))

    def iter_file(self, file: str, *, version_id: str | None = None, output: str | None = None) -> Generator[bytes]:
        """The bytes of a file in pieces: as it is, of one of its versions, or an ``output`` of its conversion.

        Close the generator (``contextlib.closing``) where you leave it early.
        """
        request = bytes_of_files.download(file, version_id=version_id, output=output)
        try:
            with self._exchange.open(request) as opened:
                yield from opened.response.iter_bytes()
        except BrokenOff as broken:
            raise error_of(broken.reply) from None

    def download_file(
        self, file: str, target: Path, *, version_id: str | None = None, output: str | None = None
    ) -> int:
        """Download a file to ``target``, which is there whole or as it was before; answers the number of bytes."""
        request = bytes_of_files.download(file, version_id=version_id, output=output)
        try:
            with self._exchange.open(request) as opened, Landing(target) as landing:
                for piece in opened.response.iter_bytes():
                    landing.write(piece)
                return landing.settle(opened.response.headers.get("ETag", ""))
        except BrokenOff as broken:
            raise error_of(broken.reply) from None
