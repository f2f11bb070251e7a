"""The client for programs: every operation of the service as a method, blocking in `Client`, awaited in `AsyncClient`.

::

    with Client("http://127.0.0.1:8400", api_key=key) as client:
        for sink in client.iter_sinks(workspace):
            print(sink.label, sink.visible_id)

What comes back is a whole record; what goes wrong is a `ServiceError`. Nothing is retried and no redirect is followed.
Both clients build, send and judge as the daemon's `ServiceClient` does, through the same exchange; this layer only makes an
error of a reply that is no success. The methods are listed in `ingestd.client.surface`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Generator
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import httpx
import msgspec

from ingestd.client.caller import Caller, address_of
from ingestd.client.decoding import Unreadable
from ingestd.client.errors import error_of
from ingestd.client.exchange import AsyncExchange, BlockingExchange, BrokenOff
from ingestd.client.judgement import Judgement
from ingestd.client.methods import Awaiting, Blocking
from ingestd.client.records import Entry
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.client.requests.sinks import get_sink
from ingestd.client.sink_stream import SinkStream
from ingestd.client.surface import Surface
from ingestd.client.transport import Timeouts, TransportOptions

T = TypeVar("T")

# A program decides for itself how long it waits; a service that asks for more than a day means something else.
_LONGEST_WAIT_SECONDS = 86_400.0


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
        caller = _caller(url, api_key, client_id)
        made_with = caller.http_options(timeouts or Timeouts(), options or TransportOptions())
        http = httpx.Client(**made_with, transport=transport)
        self._exchange = BlockingExchange(caller, _judgement(), http)
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
        return _value(self._exchange.reply(request))

    def iter_entries(self, workspace: str, sink: str) -> Generator[Entry]:
        """The entries of a sink of any size, one after the other, in memory for one network chunk.

        An error may come after entries that were given already: what is missing is not known then. Close the generator
        (``contextlib.closing``) where you leave it early.
        """
        stream = SinkStream(_entry_of)
        try:
            with self._exchange.open(get_sink(workspace, sink)) as opened:
                for piece in opened.response.iter_bytes():
                    yield from stream.feed(piece)
                stream.finish()
        except BrokenOff as broken:
            raise error_of(broken.reply) from None


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
        caller = _caller(url, api_key, client_id)
        made_with = caller.http_options(timeouts or Timeouts(), options or TransportOptions())
        http = httpx.AsyncClient(**made_with, transport=transport)
        self._exchange = AsyncExchange(caller, _judgement(), http)
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
        return _value(await self._exchange.reply(request))

    async def iter_entries(self, workspace: str, sink: str) -> AsyncGenerator[Entry]:
        """The entries of a sink of any size, one after the other, in memory for one network chunk.

        An error may come after entries that were given already: what is missing is not known then. Close the generator
        (``contextlib.aclosing``) where you leave it early.
        """
        stream = SinkStream(_entry_of)
        try:
            async with self._exchange.open(get_sink(workspace, sink)) as opened:
                async for piece in opened.response.aiter_bytes():
                    for entry in stream.feed(piece):
                        yield entry
                stream.finish()
        except BrokenOff as broken:
            raise error_of(broken.reply) from None


def _caller(url: str, api_key: str | None, client_id: str | None) -> Caller:
    return Caller(url=url, api_key=api_key, client_id=client_id or f"client-{secrets.token_hex(6)}")


def _judgement() -> Judgement:
    return Judgement(now=time.time, retry_after_cap_seconds=_LONGEST_WAIT_SECONDS)


def _value(reply: Reply[T]) -> T:
    if not reply.ok:
        raise error_of(reply)
    return cast("T", reply.value)  # there exactly where the reply is a success; None is a value, too


def _entry_of(members: dict[str, Any]) -> Entry:
    try:
        return msgspec.convert(members, Entry)
    except msgspec.ValidationError:
        raise Unreadable("an entry is not what the document says") from None
