"""HTTP/1.1 for many small requests: httptools on asyncio.

httpx's default transport takes longer for a request of one entry than a service takes to respond; `bench single` measures
both. This transport has no proxies, no HTTP/2 and no compressed responses, and a response has to fit into memory. asyncio
does TLS; llhttp parses. The caller limits the number of requests in flight. Each has its own connection, which is kept for
the next request.
"""

from __future__ import annotations

import asyncio
import ssl
import time

import httpx

from ingestd.client.fast_connection import FastConnection, FastResponse, IdleTimeouts
from ingestd.client.response import MAX_BODY_BYTES
from ingestd.client.server_address import ServerAddress


class FastTransport:
    """Connections to one service.

    ``verify``: True for the usual authorities, or a context, as httpx takes it.
    ``connect_seconds`` None: no limit. ``keepalive_seconds``: how long a connection without a request is kept.
    """

    def __init__(
        self,
        address: ServerAddress,
        *,
        idle_timeouts: IdleTimeouts,
        connect_seconds: float | None,
        verify: ssl.SSLContext | bool = True,
        keepalive_seconds: float = 3.0,
    ) -> None:
        self._address = address
        self._idle_timeouts = idle_timeouts
        self._connect_seconds = connect_seconds
        self._context = verify if isinstance(verify, ssl.SSLContext) else None
        self._keepalive_seconds = keepalive_seconds
        self._kept: list[FastConnection] = []

    async def send(self, message: bytes, max_response_bytes: int = MAX_BODY_BYTES) -> FastResponse:
        """Send a whole request, and return its response. A longer body than ``max_response_bytes`` is a broken response.

        Raises:
            httpx.TransportError: no whole response arrived.
        """
        connection = self._reused() or await self._connect()
        try:
            response = await connection.send(message, self._idle_timeouts, max_response_bytes)
        except BaseException:
            connection.close()
            raise
        if connection.usable:
            connection.idle_since = time.monotonic()
            self._kept.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Close the connections without a request. A connection with a request is closed by its sender."""
        for connection in self._kept:
            connection.close()
        self._kept.clear()

    def _reused(self) -> FastConnection | None:
        """Return the connection that was used last. Close those that idled too long: the service may be closing them."""
        if not self._kept:
            return None
        earliest = time.monotonic() - self._keepalive_seconds
        while self._kept:
            connection = self._kept.pop()
            if connection.usable and connection.idle_since >= earliest:
                return connection
            connection.close()
        return None

    async def _connect(self) -> FastConnection:
        if self._address.tls and self._context is None:
            self._context = httpx.create_ssl_context(trust_env=False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await loop.create_connection(
                    FastConnection,
                    self._address.host,
                    self._address.port,
                    ssl=self._context if self._address.tls else None,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except OSError as error:  # ssl.SSLError and socket.gaierror are OSErrors; `fault_of` looks at the cause
            raise httpx.ConnectError("no connection") from error
        return connection
