"""The connections of one listener: how many are admitted, which are closed, and what is logged and counted.

A full listener first closes a connection with a response that lacks only its end. Then it closes one that only waits for its
client (idle, or with an incomplete head), then one with a client that has made no progress for a second. So clients that send
whole requests are admitted while hostile ones hold connections open. The address with the most connections loses one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, Literal, Protocol, TypeAlias

import structlog

from workspaced.server.descriptors import RESERVED, connection_capacity, descriptor_limit
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.telemetry.metrics import Metrics

Reason: TypeAlias = Literal[
    "bad_request",
    "target_too_long",
    "head_too_large",
    "too_many_requests_at_once",
    "head_timeout",
    "body_too_slow",
    "not_reading",
    "evicted",
    "too_many_connections",
    "too_many_connections_of_address",
    "descriptors_exhausted",
]

_SWEEP_SECONDS: Final = 1.0
_SUMMARY_SECONDS: Final = 60.0
_SUBNET_BITS: Final = 64
_STALLED_SECONDS: Final = 1.0
_ADMIN_CONNECTIONS: Final = 64
_MOST_REFUSED: Final = RESERVED // 2


class ManagedConnection(Protocol):
    """A connection as `Connections` uses it."""

    @property
    def source(self) -> str:
        """Return the address that the connection counts for."""

    @property
    def awaits_request(self) -> bool:
        """Return whether no complete request is without its response, so that closing the connection loses nothing."""

    @property
    def is_ending(self) -> bool:
        """Return whether the last response was sent apart from its end, so that closing the connection loses nothing."""

    @property
    def stalled_since(self) -> float | None:
        """Return since when, by the event loop, the client has sent or read too little; None if it need not act."""

    @property
    def awaits_client(self) -> bool:
        """Return whether the client must act next: send the rest of a request, or read."""

    def close_overdue(self, now: float) -> None:
        """Close the connection if its client has missed a deadline; ``now`` is the event loop's time in seconds."""

    def evict(self) -> None:
        """Close the connection at once."""


@dataclass(slots=True)
class _Sample:
    """How often connections were closed for a reason since it was logged, and the address of the last one."""

    since: float
    address: str
    count: int = 0


class Connections:
    """The open connections of one listener. All methods are called on the event loop's thread."""

    def __init__(
        self,
        limits: Limits,
        *,
        descriptors: int,
        listener: str,
        reserved: int = RESERVED,
        is_proxy: Callable[[str], bool],
        count_closed: Callable[[str], None],
        count_open: Callable[[int], None],
    ) -> None:
        """Admit connections within ``limits`` and ``descriptors``, the process's limit of open files; ``reserved`` stay free.

        ``listener`` is its name in the log. ``is_proxy`` selects addresses that have no limit of their own. ``count_closed`` is
        called with the reason of each connection that the service closes or refuses, ``count_open`` with 1 or -1.
        """
        self.limits = limits
        self.capacity = connection_capacity(limits.connections, descriptors)
        self._listener = listener
        self._last_descriptor = descriptors - reserved
        self.is_proxy = is_proxy
        self._count_closed = count_closed
        self._count_open = count_open
        self._by_source: dict[str, dict[ManagedConnection, None]] = {}
        self._ending: dict[ManagedConnection, None] = {}
        self._refused: set[ManagedConnection] = set()
        self._open = 0
        self._samples: dict[Reason, _Sample] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to close clients that miss their deadlines."""
        seconds = min(_SWEEP_SECONDS, self.limits.head_seconds / 4, self.limits.stall_seconds / 4)
        self._sweep = asyncio.get_running_loop().call_later(seconds, self._close_overdue)

    def stop(self) -> None:
        """Stop looking for them."""
        if self._sweep:
            self._sweep.cancel()

    def admit(self, connection: ManagedConnection, *, descriptor: int) -> Reason | None:
        """Count a new connection; return why it is refused, or None if it is admitted.

        ``descriptor`` is its socket's number. The kernel assigns the lowest free number, so a number near the limit shows
        that all lower ones are in use.
        """
        source = connection.source
        own = self._by_source.get(source, {})
        reason: Reason | None = None
        most = self.limits.connections_per_address
        if most and len(own) >= most and not self.is_proxy(source):
            reason = None if self._evict_from(own, only_idle=True) else "too_many_connections_of_address"
        elif self._open >= self.capacity:
            reason = None if self._evict_for(source) else "too_many_connections"
        elif descriptor >= self._last_descriptor:
            reason = None if self._evict_for(source) else "descriptors_exhausted"
        if reason is None:
            self._by_source.setdefault(source, {})[connection] = None
            self._open += 1
            self._count_open(1)
        return reason

    def keep_refused(self, connection: ManagedConnection) -> bool:
        """Return whether a refused connection may stay open until its client has read the reason; a few may."""
        if len(self._refused) >= _MOST_REFUSED:
            return False
        self._refused.add(connection)
        return True

    def remove(self, connection: ManagedConnection) -> None:
        """Forget a closed connection."""
        self._refused.discard(connection)
        self._ending.pop(connection, None)
        own = self._by_source.get(connection.source)
        if own is None or connection not in own:
            return
        del own[connection]
        if not own:
            del self._by_source[connection.source]
        self._open -= 1
        self._count_open(-1)

    def note_ending(self, connection: ManagedConnection) -> None:
        """Note a connection that may be the first to be closed, while it is ending."""
        if connection in self._by_source.get(connection.source, ()):
            self._ending[connection] = None

    def note(self, reason: Reason, address: str) -> None:
        """Count a connection that was closed or refused; log the first one, and once a minute how many followed."""
        self._count_closed(reason)
        sample = self._samples.get(reason)
        if sample is None:
            now = asyncio.get_running_loop().time()
            self._samples[reason] = _Sample(since=now, address=address)
            structlog.get_logger().warning(
                "connection_closed", listener=self._listener, reason=reason, address=address, open=self._open
            )
        else:
            sample.count += 1
            sample.address = address

    def _evict_for(self, source: str) -> bool:
        """Close a connection that is ending, else one of the address that has the most; return whether one was closed.

        If a request is incomplete, or the client does not read, the connection is closed only if its address has more connections
        than that of the new one, and is not a proxy.
        """
        if (ending := next((one for one in self._ending if one.is_ending), None)) is not None:
            return self._evict(ending)
        most = max(self._by_source, key=lambda one: len(self._by_source[one]), default=None)
        if most is None:
            return False
        theirs = self._by_source[most]
        fair = len(theirs) > len(self._by_source.get(source, ())) and not self.is_proxy(most)
        return self._evict_from(theirs, only_idle=not fair)

    def _evict_from(self, connections: dict[ManagedConnection, None], *, only_idle: bool) -> bool:
        victim = next((one for one in self._ending if one in connections and one.is_ending), None)
        if victim is None:
            victim = next((one for one in connections if one.awaits_request), None)
        if victim is None and not only_idle:
            victim = next((one for one in connections if one.awaits_client), None)
        if victim is None:
            victim = _longest_stalled(connections, until=asyncio.get_running_loop().time() - _STALLED_SECONDS)
        return victim is not None and self._evict(victim)

    def _evict(self, victim: ManagedConnection) -> bool:
        self.remove(victim)
        self.note("evicted", victim.source)
        victim.evict()
        return True

    def _close_overdue(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        try:
            for connection in [*self._refused, *(one for own in self._by_source.values() for one in own)]:
                try:
                    connection.close_overdue(now)
                except Exception:  # noqa: BLE001  a failure at one connection must not affect the others
                    structlog.get_logger().exception("connection_not_checked", listener=self._listener)
                    connection.evict()
            self._summarise(now)
        finally:
            self.start()

    def _summarise(self, now: float) -> None:
        for reason, sample in list(self._samples.items()):
            if now - sample.since < _SUMMARY_SECONDS:
                continue
            del self._samples[reason]
            if sample.count:
                structlog.get_logger().warning(
                    "connections_closed",
                    listener=self._listener,
                    reason=reason,
                    count=sample.count,
                    seconds=round(now - sample.since),
                    address=sample.address,
                    open=self._open,
                )


def _longest_stalled(connections: Iterable[ManagedConnection], *, until: float) -> ManagedConnection | None:
    """Return the connection with the client that has been stalled for longest; None if none has been since ``until``."""
    since, found = until, None
    for one in connections:
        stalled = one.stalled_since
        if stalled is not None and stalled <= since:
            since, found = stalled, one
    return found


def source_of(peer: str) -> str:
    """Return the address that a client counts for: its own, or the /64 network of an IPv6 one; empty for a Unix socket."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or IPv6Network((address, _SUBNET_BITS), strict=False))
    return str(address)


def public_connections(settings: WorkspacedSettings, metrics: Metrics) -> Connections:
    """Return the connections of a process's listener for clients."""
    return Connections(
        settings.limits,
        descriptors=descriptor_limit(),
        listener="clients",
        is_proxy=settings.proxies.trusts,
        count_closed=metrics.connection_closed,
        count_open=metrics.connections_changed,
    )


def admin_connections() -> Connections:
    """Return the connections of the operators' listener: few, which may use the reserved descriptors."""
    return Connections(
        Limits(connections=_ADMIN_CONNECTIONS, connections_per_address=0),
        descriptors=descriptor_limit(),
        listener="operators",
        reserved=0,
        is_proxy=lambda _: False,
        count_closed=lambda _: None,
        count_open=lambda _: None,
    )
