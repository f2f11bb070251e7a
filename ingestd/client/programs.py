"""The clients for programs: a blocking client, and an asynchronous client that has the same methods as coroutines.

::

    with Client("http://127.0.0.1:8400", api_key=key) as client:
        for sink in client.list_sinks(workspace):
            print(sink.label, sink.visible_id)

Methods return whole records and raise `ServiceError`. Nothing is retried, and no redirect is followed. Requests and responses
are the same as in the daemon's `ServiceClient`. All methods use ``send``, which returns a response and never raises
`ServiceError`. `ingestd.client.operations` declares the methods.
"""

from __future__ import annotations

import secrets

import httpx

from ingestd.client.exchange import AsyncExchange, BlockingExchange
from ingestd.client.named_sink import NamedSink, find_sink
from ingestd.client.operations import ServiceMethods
from ingestd.client.outcome_parser import OutcomeParser
from ingestd.client.request_builder import RenewableKey, RequestBuilder
from ingestd.client.transport import Timeouts, TransportOptions, httpx_settings


class Client(ServiceMethods, BlockingExchange):
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
        http = httpx.Client(**httpx_settings(url, timeouts, options), transport=transport)
        super().__init__(_builder(api_key, client_id), OutcomeParser(options=options), http)

    def sink(self, workspace: str, sink: str) -> NamedSink:
        """Return a sink by its label or visible id, in a workspace by its label. Both arguments may also be ids.

        Raises:
            NameUnknown: there is no such workspace or sink; the sentence has the most similar name.
            NameAmbiguous: several workspaces or sinks have the name; the sentence has their ids.
            ServiceError: the service can't be used.
        """
        return find_sink(self, workspace, sink)


class AsyncClient(ServiceMethods, AsyncExchange):
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
        http = httpx.AsyncClient(**httpx_settings(url, timeouts, options), transport=transport)
        super().__init__(_builder(api_key, client_id), OutcomeParser(options=options), http)


def _builder(api_key: str | None, client_id: str | None) -> RequestBuilder:
    return RequestBuilder(key=RenewableKey(api_key), client_id=client_id or f"client-{secrets.token_hex(6)}")
