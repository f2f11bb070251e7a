"""HTTP/1.1 for many small requests: httptools on asyncio.

httpx's default transport takes longer for a request of one entry than a service takes to respond; `bench single` measures
both. This transport supports no proxies, no HTTP/2 and no compressed responses, and a response must fit into memory. asyncio
does TLS; llhttp parses responses. The caller limits the number of requests in flight. Each request in flight has its own
connection, which a later request may use again.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Self
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from ingestd.client.fast_connection import FastConnection, FastResponse
from ingestd.client.response import MAX_BODY_BYTES
from ingestd.client.transport import Timeouts

_PORTS = {"http": 80, "https": 443}
_KEPT_IN_PATHS = "/%:@!$&'()*+,;=~"


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a server, with the Host header and the path prefix of its requests.

    ``host``: a name in ASCII, or an address without brackets. ``host_header``: the host with its port, without the default port
    of the scheme. ``prefix``: the path below which the operations are, without a slash at its end.
    """

    tls: bool
    host: str
    port: int
    host_header: bytes
    prefix: bytes

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the address of an ``http://`` or ``https://`` URL; user and password are ignored.

        Raises:
            ValueError: the URL has another scheme, or no host.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address is no http:// or https:// URL with a host")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
        port = parts.port or _PORTS[parts.scheme]
        shown = f"[{host}]" if ":" in host else host
        return cls(
            tls=parts.scheme == "https",
            host=host,
            port=port,
            host_header=(shown if port == _PORTS[parts.scheme] else f"{shown}:{port}").encode("ascii"),
            prefix=quote(parts.path, safe=_KEPT_IN_PATHS).rstrip("/").encode("ascii"),
        )


class FastTransport:
    """Connections to one service.

    ``verify``: a TLS context, or True for the default certificate authorities. ``keepalive_seconds``: how long a connection
    without a request is kept.
    """

    def __init__(
        self,
        address: ServerAddress,
        timeouts: Timeouts,
        *,
        verify: ssl.SSLContext | bool = True,
        keepalive_seconds: float = 3.0,
    ) -> None:
        self.address = address
        self._timeouts = timeouts
        self._context = verify if isinstance(verify, ssl.SSLContext) else None
        self._keepalive_seconds = keepalive_seconds
        self._kept: list[FastConnection] = []

    async def send(self, message: bytes, max_response_bytes: int = MAX_BODY_BYTES) -> FastResponse:
        """Send a complete request, and return its response.

        A body of more than ``max_response_bytes`` is an error.

        Raises:
            httpx.TransportError: no complete response arrived.
        """
        connection = self._reused() or await self._connect()
        try:
            response = await connection.send(message, self._timeouts, max_response_bytes)
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
        """Close the connections without a request. `send` closes or keeps a connection that has a request."""
        for connection in self._kept:
            connection.close()
        self._kept.clear()

    def _reused(self) -> FastConnection | None:
        """Return the connection that was used last, or None. Close connections that were idle for ``keepalive_seconds``."""
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
        if self.address.tls and self._context is None:
            self._context = httpx.create_ssl_context(trust_env=False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeouts.connect_seconds):
                context = self._context if self.address.tls else None
                _, connection = await loop.create_connection(
                    FastConnection, self.address.host, self.address.port, ssl=context
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except OSError as error:  # ssl.SSLError and socket.gaierror are OSErrors; `fault_of` looks at the cause
            raise httpx.ConnectError("no connection") from error
        return connection
