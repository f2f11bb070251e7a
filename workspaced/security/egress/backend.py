"""Connections only to addresses that were judged: resolved once, and that very address is connected to."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeAlias

import httpcore

from workspaced.security.egress.addresses import Address
from workspaced.security.egress.rules import EgressRules, UnsafeTarget, literal

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]


async def system_resolver(host: str, port: int) -> Sequence[Address]:
    """What the system's resolver says, in its order.

    Each look-up has a thread of its own, which the process does not wait for: a name server that hangs, perhaps on
    purpose, holds up neither the look-ups of others nor the end.

    Raises:
        OSError: it knows no such name, or can't be asked.
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
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(_tell, found, addresses, failure)

    threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    return await found


def _tell(found: asyncio.Future[Sequence[Address]], addresses: Sequence[Address], failure: Exception | None) -> None:
    if found.done():  # given up
        return
    if failure is None:
        found.set_result(addresses)
    else:
        found.set_exception(failure)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """A network backend of httpcore. The name stays what TLS and the Host header see; the socket gets an address.

    A name that is public when it is judged and 127.0.0.1 when it is connected to (rebinding) gains nothing: nobody asks
    a second time.
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
        """Connect to the first address of the host that answers.

        Raises:
            UnsafeTarget: one of its addresses may not be reached; none is tried then.
            httpcore.ConnectError: it has no address, or none answers.
            httpcore.ConnectTimeout: not in time.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(host, port)
                return await self._first(addresses, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} could not be connected to within {timeout:g} seconds.") from error

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        address = literal(host)
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
        for address in addresses[:-1]:
            try:
                return await self._sockets.connect_tcp(
                    str(address), port, local_address=local_address, socket_options=options
                )
            except httpcore.ConnectError:
                continue  # the next address may answer; the last one's failure is told
        return await self._sockets.connect_tcp(
            str(addresses[-1]), port, local_address=local_address, socket_options=options
        )

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never: no URL leads to one."""
        _ = timeout, socket_options
        raise UnsafeTarget(f"The socket {path} is not one of the public internet.")

    async def sleep(self, seconds: float) -> None:
        """As httpcore asks for."""
        await asyncio.sleep(seconds)
