"""The connections of one listener: the maximum number, and which connection is closed to admit a new connection.

A full listener closes a connection that only drains a refused request. If there is none, it closes a connection of the address
with the most connections: a connection that waits for a request, or else the connection that has been stalled longest.
So clients that send whole requests are admitted while hostile clients hold connections open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol

from ingestd.process.http_server.limits import ConnectionLimits, Reason

_SWEEP_SECONDS: Final = 1.0
_SUBNET_BITS: Final = 64
_MOST_REFUSED: Final = 32


class OpenConnection(Protocol):
    """The part of a connection that `Connections` uses."""

    @property
    def source(self) -> str:
        """Return the address under which the connection is counted."""

    @property
    def is_ending(self) -> bool:
        """Return whether only the end of a response is missing, so that closing the connection loses nothing."""

    @property
    def awaits_request(self) -> bool:
        """Return whether every complete request has its response, so that closing the connection loses nothing."""

    @property
    def stalled_since(self) -> float | None:
        """Return the event loop's time since which the client sends or reads too little; None if it need not send or read."""

    def close_overdue(self, now: float) -> None:
        """Close the connection if its client has missed a deadline; ``now`` is the event loop's time in seconds."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """The open connections of one listener. All methods are called on the event loop's thread.

    ``is_proxy`` selects addresses without a limit per address. ``on_closed`` is called with the reason and the address of each
    connection that the server closes or refuses, ``on_count`` with 1 or -1. A socket with the number
    ``first_reserved_descriptor`` or higher is refused. The kernel assigns the lowest free number, so lower numbers are in use.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        *,
        is_proxy: Callable[[str], bool] = lambda _: False,
        on_closed: Callable[[Reason, str], None] = lambda _reason, _address: None,
        on_count: Callable[[int], None] = lambda _: None,
        first_reserved_descriptor: float = float("inf"),
    ) -> None:
        self.limits = limits
        self.is_proxy = is_proxy
        self.note = on_closed
        self._on_count = on_count
        self._first_reserved_descriptor = first_reserved_descriptor
        self._by_source: dict[str, dict[OpenConnection, None]] = {}
        self._ending: dict[OpenConnection, None] = {}
        self._refused: set[OpenConnection] = set()
        self._open = 0
        self._sweep: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to close clients that miss their deadlines."""
        seconds = min(_SWEEP_SECONDS, self.limits.head_seconds / 4, self.limits.stall_seconds / 4)
        self._sweep = asyncio.get_running_loop().call_later(seconds, self._close_overdue)

    def stop(self) -> None:
        """Close all connections at once."""
        if self._sweep:
            self._sweep.cancel()
        for connection in self._all():
            connection.abort()

    def admit(self, connection: OpenConnection, *, descriptor: int) -> Reason | None:
        """Count a new connection and return None, or return why it is refused. ``descriptor``: the number of its socket."""
        source = connection.source
        own = self._by_source.get(source, {})
        most = self.limits.connections_per_address
        if most and len(own) >= most and not self.is_proxy(source):
            if not self._evict_one(own):
                return "too_many_connections_of_address"
        elif self._open >= self.limits.connections or descriptor >= self._first_reserved_descriptor:
            ending = next((one for one in self._ending if one.is_ending), None)
            largest = max(self._by_source.values(), key=len, default={})
            if not self._evict_one((ending,) if ending else largest):
                return "too_many_connections"
        self._by_source.setdefault(source, {})[connection] = None
        self._open += 1
        self._on_count(1)
        return None

    def keep_refused(self, connection: OpenConnection) -> bool:
        """Return whether a refused connection may stay open until its client has read the reason. Few connections may."""
        if len(self._refused) >= _MOST_REFUSED:
            return False
        self._refused.add(connection)
        return True

    def note_ending(self, connection: OpenConnection) -> None:
        """Note that a connection `is_ending`, so that a full listener closes it before other connections."""
        if connection in self._by_source.get(connection.source, ()):
            self._ending[connection] = None

    def remove(self, connection: OpenConnection) -> None:
        """Forget a closed connection. A second call has no effect."""
        self._refused.discard(connection)
        self._ending.pop(connection, None)
        own = self._by_source.get(connection.source, {})
        if connection in own:
            del own[connection]
            if not own:
                del self._by_source[connection.source]
            self._open -= 1
            self._on_count(-1)

    def _evict_one(self, connections: Iterable[OpenConnection]) -> bool:
        victim = next((one for one in connections if one.is_ending), None)
        victim = victim or next((one for one in connections if one.awaits_request), None)
        victim = victim or _longest_stalled(connections, seconds=self.limits.stalled_seconds)
        if victim is None:
            return False
        self.remove(victim)
        self.note("evicted", victim.source)
        victim.abort()
        return True

    def _close_overdue(self) -> None:
        now = asyncio.get_running_loop().time()
        try:
            for connection in self._all():
                connection.close_overdue(now)
        finally:
            self.start()

    def _all(self) -> list[OpenConnection]:
        return [*self._refused, *(one for own in self._by_source.values() for one in own)]


def _longest_stalled(connections: Iterable[OpenConnection], *, seconds: float) -> OpenConnection | None:
    """Return the connection with the client that has been stalled longest; None if none was stalled for ``seconds``."""
    until = asyncio.get_running_loop().time() - seconds
    stalled = [(since, one) for one in connections if (since := one.stalled_since) is not None and since <= until]
    return min(stalled, key=lambda pair: pair[0])[1] if stalled else None


def source_of(peer: str) -> str:
    """Return the address under which a client is counted: for IPv6 the /64 network, for a Unix socket an empty text."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or IPv6Network((address, _SUBNET_BITS), strict=False))
    return str(address)
