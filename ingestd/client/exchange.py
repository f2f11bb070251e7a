"""One request and what it came to, asynchronously and blocking. Nothing here raises for what a service or a network can do.

Both classes do the same around one ``await``; building and judging, which are most of it, stand once, in
`ingestd.client.caller` and `ingestd.client.judgement`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from ingestd.client.caller import Caller
from ingestd.client.decoding import Mismatch, Unreadable
from ingestd.client.faults import fault_of
from ingestd.client.judgement import Judgement
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.wire import names

T = TypeVar("T")


class BrokenOff(Exception):
    """An answer that is read piece by piece is a refusal, or ended before its end; ``reply`` says what it was."""

    def __init__(self, reply: Reply[Any]) -> None:
        self.reply = reply
        super().__init__(reply.outcome.sentence)


@dataclass(frozen=True, slots=True)
class Opened:
    """A success whose body is still to be read. ``started`` is of the judgement's clock."""

    response: httpx.Response
    started: float


@contextmanager
def _judged(judgement: Judgement, request: Request[Any], started: float) -> Iterator[None]:
    """What goes wrong while an answer is read, as the reply that it comes to.

    Raises:
        BrokenOff: something did.
    """
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BrokenOff(judgement.no_answer(request.operation, fault_of(error), started)) from None
    except Unreadable:
        raise BrokenOff(judgement.unreadable(request.operation, started, 200)) from None
    except Mismatch as mismatch:
        raise BrokenOff(judgement.mismatched(request.operation, started, 200, mismatch)) from None


class AsyncExchange:
    """Over ``httpx.AsyncClient``."""

    def __init__(self, caller: Caller, judgement: Judgement, http: httpx.AsyncClient) -> None:
        self._caller = caller
        self._judgement = judgement
        self.http = http

    async def reply(self, request: Request[T], content: AsyncIterable[bytes] | None = None) -> Reply[T]:
        """Send a request and read its answer to the end; ``content`` is a body in pieces."""
        message = self._caller.message(self.http, request, content)
        started = self._judgement.clock()
        try:
            response = await self.http.send(message)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return self._judgement.no_answer(request.operation, fault_of(error), started)
        return self._judgement.reply(request, response, started)

    @asynccontextmanager
    async def open(self, request: Request[Any]) -> AsyncIterator[Opened]:
        """Send a request; a success is handed out unread, and closed at the end of the block.

        Raises:
            BrokenOff: the service refuses, does not answer, or breaks off within the block.
        """
        message = self._caller.message(self.http, request)
        started = self._judgement.clock()
        with _judged(self._judgement, request, started):
            response = await self.http.send(message, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise BrokenOff(self._judgement.reply(request, response, started))
                yield Opened(response, started)
            finally:
                await response.aclose()

    def use_api_key(self, api_key: str) -> None:
        """Send this key with every request from now on."""
        self.http.headers[names.API_KEY] = api_key

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()


class BlockingExchange:
    """Over ``httpx.Client``."""

    def __init__(self, caller: Caller, judgement: Judgement, http: httpx.Client) -> None:
        self._caller = caller
        self._judgement = judgement
        self.http = http

    def reply(self, request: Request[T], content: Iterable[bytes] | None = None) -> Reply[T]:
        """Send a request and read its answer to the end; ``content`` is a body in pieces."""
        message = self._caller.message(self.http, request, content)
        started = self._judgement.clock()
        try:
            response = self.http.send(message)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return self._judgement.no_answer(request.operation, fault_of(error), started)
        return self._judgement.reply(request, response, started)

    @contextmanager
    def open(self, request: Request[Any]) -> Iterator[Opened]:
        """Send a request; a success is handed out unread, and closed at the end of the block.

        Raises:
            BrokenOff: the service refuses, does not answer, or breaks off within the block.
        """
        message = self._caller.message(self.http, request)
        started = self._judgement.clock()
        with _judged(self._judgement, request, started):
            response = self.http.send(message, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise BrokenOff(self._judgement.reply(request, response, started))
                yield Opened(response, started)
            finally:
                response.close()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()
