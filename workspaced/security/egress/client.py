"""A client for requests to URLs that users set. It checks each URL, follows no redirect, and limits time and body size.

The name is resolved once, and the connection uses exactly the address that was checked.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from types import TracebackType
from typing import Self, TypeAlias

import httpcore

from workspaced.security.egress.rules import Address, EgressRules, UnsafeTarget, literal_address

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]


async def system_resolver(host: str, port: int) -> Sequence[Address]:
    """Return the addresses that the system's resolver finds, in its order.

    Each look-up has its own daemon thread. So a name server that hangs, perhaps on purpose, delays neither other look-ups nor
    the end of the process.

    Raises:
        OSError: the name is unknown, or no resolver responds.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[Address]] = loop.create_future()

    def look_up() -> None:
        addresses: Sequence[Address] = ()
        failure: Exception | None = None
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries))
        except (OSError, ValueError) as error:  # a name that can't be encoded is a ValueError
            failure = OSError(str(error))
        with suppress(RuntimeError):  # the loop is closed, so no task waits
            loop.call_soon_threadsafe(_set_result, found, addresses, failure)

    threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    return await found


def _set_result(
    found: asyncio.Future[Sequence[Address]], addresses: Sequence[Address], failure: Exception | None
) -> None:
    if found.done():  # the caller was cancelled
        return
    if failure is None:
        found.set_result(addresses)
    else:
        found.set_exception(failure)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """A network backend of httpcore. TLS and the Host header use the name, the socket uses the checked address.

    The name is resolved only once. So DNS rebinding has no effect: a name can't have a public address at the check and
    127.0.0.1 at the connection.
    """

    def __init__(self, rules: EgressRules, *, resolve: Resolver = system_resolver) -> None:
        self._rules = rules
        self._resolve = resolve
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of the host that accepts the connection.

        Raises:
            UnsafeTarget: an address of the host is not permitted; then no address is tried.
            httpcore.ConnectError: the host has no address, or no address accepts the connection.
            httpcore.ConnectTimeout: resolving and connecting took too long.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(host, port)
                return await self._first(addresses, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} could not be connected to within {timeout:g} seconds.") from error

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        address = literal_address(host)
        try:
            addresses = (address,) if address else await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"The name {host} can't be resolved.") from error
        self._rules.require_addresses(host, addresses)
        return addresses

    async def _first(
        self,
        addresses: Sequence[Address],
        port: int,
        local_address: str | None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> httpcore.AsyncNetworkStream:
        options = list(socket_options or ())
        failure = httpcore.ConnectError("The host has no address.")
        for address in addresses:
            try:
                return await self._sockets.connect_tcp(
                    str(address), port, local_address=local_address, socket_options=options
                )
            except httpcore.ConnectError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: no URL leads to a Unix socket."""
        _ = timeout, socket_options
        raise UnsafeTarget(f"The socket {path} does not belong to the public internet.")

    async def sleep(self, seconds: float) -> None:
        """Wait; httpcore calls this."""
        await asyncio.sleep(seconds)


class ReceiverUnreachable(Exception):
    """There was no complete response. The text is a sentence for people; ``code`` is stable, for programs."""

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverResponse:
    """The response of a receiver. The body is truncated to ``Bounds.response_bytes``. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a request: seconds for the connection and for the whole request, and how many bytes of the body are read."""

    connect_seconds: float = 5.0
    total_seconds: float = 15.0
    response_bytes: int = 65_536


class EgressClient:
    """A client for use in ``async with``. Each request has its own connection, so the name is resolved and checked again.

    Environment variables, such as those of proxies, are ignored.
    """

    def __init__(
        self,
        rules: EgressRules,
        *,
        bounds: Bounds,
        resolve: Resolver = system_resolver,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._bounds = bounds
        self._resolve = resolve
        self._trust = trust

    @cached_property
    def _pool(self) -> httpcore.AsyncConnectionPool:
        """The pool. The first request creates it, because loading the authorities takes a fifteenth of the service's start."""
        return httpcore.AsyncConnectionPool(
            ssl_context=self._trust or httpcore.default_ssl_context(),
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(self._rules, resolve=self._resolve),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "_pool" in self.__dict__:
            await self._pool.aclose()

    async def post(self, url: str, *, headers: Sequence[tuple[str, str]], body: bytes) -> ReceiverResponse:
        """Send a POST; return the response with any status, also a redirect.

        Raises:
            ReceiverUnreachable: the URL is not permitted, or there was no complete response in time.
        """
        try:
            target = self._rules.target(url)
            async with asyncio.timeout(self._bounds.total_seconds):
                return await self._exchange(
                    httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
                    [("Host", target.authority), ("Content-Length", str(len(body))), *headers],
                    body,
                )
        except UnsafeTarget as error:
            raise ReceiverUnreachable("unsafe_url", f"The URL is not permitted. {error}") from error
        except (TimeoutError, httpcore.TimeoutException) as error:
            sentence = f"No response within {self._bounds.total_seconds:g} seconds."
            raise ReceiverUnreachable("timeout", sentence) from error
        except (httpcore.NetworkError, ssl.SSLError) as error:
            raise ReceiverUnreachable(
                "connection_failed", f"The connection failed ({str(error) or type(error).__name__})."
            ) from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            sentence = f"The response is not valid HTTP ({error})."
            raise ReceiverUnreachable("bad_response", sentence) from error

    async def _exchange(self, url: httpcore.URL, headers: Sequence[tuple[str, str]], body: bytes) -> ReceiverResponse:
        sent = [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers]
        timeouts = {"timeout": {"connect": self._bounds.connect_seconds}}
        async with self._pool.stream("POST", url, headers=sent, content=body, extensions=timeouts) as response:
            read = bytearray()
            async for part in response.aiter_stream():
                read += part
                if len(read) >= self._bounds.response_bytes:
                    break
            received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            return ReceiverResponse(
                status=response.status, headers=received, body=bytes(read[: self._bounds.response_bytes])
            )
