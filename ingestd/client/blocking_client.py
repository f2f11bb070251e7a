"""The client for programs that wait for each response.

::

    with Client("http://127.0.0.1:8400", api_key=key) as client:
        for sink in client.iter_sinks(workspace):
            print(sink.label, sink.visible_id)

Methods return whole records and raise `ServiceError`. Nothing is retried, and no redirect is followed. Requests and
responses are those of the daemon's `ServiceClient`; this layer makes an error of a response that is no success.
`ingestd.client.requests` declares the methods.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ingestd.client.api_key import RenewableKey
from ingestd.client.content import AtomicDownload
from ingestd.client.errors import error_of, value_of
from ingestd.client.exchange import BlockingExchange, ResponseFailed
from ingestd.client.methods import BlockingSender
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.request import Request
from ingestd.client.request_builder import RequestBuilder, address_of
from ingestd.client.requests import ServiceMethods
from ingestd.client.requests.files import download
from ingestd.client.transport import Timeouts, TransportOptions, httpx_settings

T = TypeVar("T")


class Client(ServiceMethods, BlockingSender):
    """A blocking client of one service; close it, or use it as a context manager. Threads may share it.

    ``api_key`` None: only public workspaces can be read. ``client_id`` names this instance in the audit log and in events;
    by default it is random. ``transport`` replaces the network.

    Raises:
        ValueError: the key or the client id has characters that a header can't hold. The sentence does not repeat them.
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
        self.client_id = client_id or f"client-{secrets.token_hex(6)}"
        builder = RequestBuilder(key=RenewableKey(api_key), client_id=self.client_id)
        http = httpx.Client(**httpx_settings(url, timeouts, options), transport=transport)
        parser = OutcomeParser(options=options)
        self._exchange = BlockingExchange(builder, parser, http)
        self.address = address_of(http)

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
        """See `BlockingSender.send`."""
        return value_of(self._exchange.send(request))

    @contextmanager
    def open(self, request: Request[Any]) -> Iterator[httpx.Response]:
        """See `BlockingSender.open`."""
        try:
            with self._exchange.open(request) as opened:
                yield opened.response
        except ResponseFailed as failed:
            raise error_of(failed.response) from None

    def download_file(
        self, file: str, target: Path, *, version_id: str | None = None, output: str | None = None
    ) -> int:
        """Download a file and return its size in bytes. A failed download leaves ``target`` as it was."""
        with self.open(download(file, version_id=version_id, output=output)) as response, AtomicDownload(target) as to:
            for chunk in response.iter_bytes():
                to.write(chunk)
            return to.commit(response.headers.get("ETag", ""))
