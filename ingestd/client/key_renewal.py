"""An API key that is read again after the service has refused it: it may have been changed where it is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from ingestd.client.exchange import AsyncExchange, BrokenOff, Opened
from ingestd.client.reply import Reply
from ingestd.client.request import Request

T = TypeVar("T")

_REFUSED = 401


class KeyedExchange(Protocol):
    """Sends requests with an API key."""

    async def reply(self, request: Request[T]) -> Reply[T]:
        """See `AsyncExchange.reply`."""

    def use_api_key(self, api_key: str) -> None:
        """Send this key with every request from now on."""

    async def close(self) -> None:
        """Close the connections."""


class KeyRenewal:
    """The key of one client. ``read`` gives the key as it is now; None: it can't be read, or never changes."""

    def __init__(self, api_key: str, *, read: Callable[[], str | None]) -> None:
        self._api_key = api_key
        self._read = read
        self._refused = False
        self.exchanges: list[KeyedExchange] = []

    def use(self, api_key: str) -> bool:
        """Send ``api_key`` from now on; return False if that is the key in use."""
        if api_key == self._api_key:
            return False
        self._api_key = api_key
        for exchange in self.exchanges:
            exchange.use_api_key(api_key)
        return True

    def before_request(self) -> None:
        """Read the key again if the service has refused it."""
        if self._refused:
            self._refused = False
            if (api_key := self._read()) is not None:
                self.use(api_key)

    def after_response(self, reply: Reply[Any]) -> None:
        """Take note of a refused key."""
        if reply.status == _REFUSED:
            self._refused = True


class RenewingExchange:
    """An exchange that reads the key again before the next request after a 401."""

    def __init__(self, exchange: KeyedExchange, renewal: KeyRenewal) -> None:
        self._exchange = exchange
        self._renewal = renewal
        renewal.exchanges.append(exchange)

    async def reply(self, request: Request[T]) -> Reply[T]:
        """See `AsyncExchange.reply`."""
        self._renewal.before_request()
        reply = await self._exchange.reply(request)
        self._renewal.after_response(reply)
        return reply

    @asynccontextmanager
    async def open(self, request: Request[Any]) -> AsyncIterator[Opened]:
        """See `AsyncExchange.open`."""
        if not isinstance(self._exchange, AsyncExchange):
            raise TypeError("only an exchange over httpx reads a response piece by piece")
        self._renewal.before_request()
        try:
            async with self._exchange.open(request) as opened:
                yield opened
        except BrokenOff as broken:
            self._renewal.after_response(broken.reply)
            raise

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()
