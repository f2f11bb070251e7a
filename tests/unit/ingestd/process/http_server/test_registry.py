"""Which connection is closed for a new one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from ingestd.process.http_server.limits import ConnectionLimits, Reason
from ingestd.process.http_server.registry import Connections


@dataclass(eq=False)
class Peer:
    """A connection. ``stalled``: for how many seconds the client has made no progress; None: it need not act."""

    source: str = "192.0.2.1"
    awaits_request: bool = False
    is_ending: bool = False
    stalled: float | None = None
    evicted: bool = False

    @property
    def stalled_since(self) -> float | None:
        return None if self.stalled is None else asyncio.get_running_loop().time() - self.stalled

    def close_overdue(self, now: float) -> None:
        """Nothing is overdue."""

    def abort(self) -> None:
        self.evicted = True


def registry(*peers: Peer, of_address: int, of_all: int = 1_000) -> Connections:
    connections = Connections(ConnectionLimits(connections=of_all, connections_per_address=of_address))
    for peer in peers:
        assert connections.admit(peer, descriptor=3) is None
        if peer.is_ending:
            connections.note_ending(peer)
    return connections


IDLE, ENDING = {"awaits_request": True}, {"is_ending": True}
STALLED, STALLED_LONGER = {"stalled": 5.0}, {"stalled": 9.0}
SLOW: dict[str, object] = {"stalled": 0.1}


WORKING: dict[str, object] = {}


@pytest.mark.parametrize(
    ("states", "victim"),
    [
        ([WORKING, IDLE, STALLED_LONGER, ENDING], 3),
        ([WORKING, STALLED, IDLE], 2),
        ([WORKING, STALLED, STALLED_LONGER, SLOW], 2),
        ([WORKING, SLOW, WORKING], None),
    ],
)
async def test_the_connection_of_the_address_that_loses_least_is_closed(
    states: list[dict[str, object]], victim: int | None
) -> None:
    # contract G31
    peers = [Peer(**state) for state in states]  # type: ignore[arg-type]
    refused: Reason | None = registry(*peers, of_address=len(peers)).admit(Peer(), descriptor=3)
    assert [peer.evicted for peer in peers] == [number == victim for number in range(len(peers))]
    assert refused == (None if victim is not None else "too_many_connections_of_address")


async def test_an_ending_connection_of_any_address_is_closed_before_those_of_the_largest_one() -> None:
    # contract G31
    peers = [Peer(**IDLE), Peer(**IDLE), Peer(source="192.0.2.2", **ENDING)]  # type: ignore[arg-type]
    connections = registry(*peers, of_address=0, of_all=3)
    assert connections.admit(Peer(source="192.0.2.3"), descriptor=3) is None
    assert [peer.evicted for peer in peers] == [False, False, True]


async def test_a_connection_that_has_begun_another_request_is_not_ending() -> None:
    peers = [Peer(**ENDING), Peer(**IDLE)]  # type: ignore[arg-type]
    connections = registry(*peers, of_address=2)
    peers[0].is_ending = False
    assert connections.admit(Peer(), descriptor=3) is None
    assert [peer.evicted for peer in peers] == [False, True]
