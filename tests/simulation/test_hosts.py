"""Simulations of several hosts of a configuration: no take-over loses, repeats or undoes anything, and each guard is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from ingestd.core.record import Cursor, Partition
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.standby.gate import SinkGate
from ingestd.standby.lease import Lease
from ingestd.standby.standby import Standby
from tests.simulation.host_sources import PushedSource
from tests.simulation.host_world import HostWorld, simulate_hosts
from tests.simulation.traced_world import Violation
from tests.support.bulk_service import BulkService

SEEDS = 10


@cache
def counts_of(seed: int) -> Counter[str]:
    """Simulate a seed, once, and return what has happened."""
    return simulate_hosts(seed).counts


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_take_overs_end_with_all_sinks_equal_to_their_sources(seed: int) -> None:
    counts_of(seed)


def test_a_seed_always_gives_the_same_simulation_of_hosts() -> None:
    assert simulate_hosts(2).lines() == simulate_hosts(2).lines()


def test_the_seeds_take_over_with_older_states_and_late_requests() -> None:
    counts = sum((counts_of(seed) for seed in range(1, SEEDS + 1)), Counter[str]())
    for what in ("restored shipments", "take-overs with an older state", "confirmed messages", "late arrivals", "cuts"):
        assert counts[what] >= 3, f"{what}: {counts}"


def refuse_no_older_request(*_: object) -> None:
    """A service that compares the writers of requests with nothing."""


def raise_no_epoch(world: HostWorld, _: object) -> None:
    """A service that grants leases, and raises the epoch of the writer only with its next request."""
    world.service.release_held()


def is_always_open(*_: object) -> bool:
    """A gate that closes no sink."""
    return True


async def permit_always(_: Lease) -> None:
    """A lease that does not stop sending."""


def is_always_newest(*_: object) -> bool:
    """A standby that continues with the state file of its host, whatever was shipped."""
    return True


def doubt_nothing(*_: object) -> str:
    """A state file that does not know that it is a shipment."""
    return ""


def confirm_when_stored(source: PushedSource, _partition: Partition, _cursor: Cursor) -> None:
    """A source that confirms messages before they are delivered."""
    if source._uncommitted is not None:
        _, key, value = source._uncommitted
        source._uncommitted = None
        source._sender.confirm(key, value)


GUARDS: dict[str, tuple[type, str, Callable[..., object], int, str]] = {
    "fence": (BulkService, "_newer", refuse_no_older_request, 26, "older than the last grant"),
    "epoch": (HostWorld, "_raise_writer", raise_no_epoch, 26, "older than the last grant"),
    "gate": (SinkGate, "is_open", is_always_open, 4, "has not read back"),
    "lease": (Lease, "permit", permit_always, 16, "after the lease of that epoch has ended"),
    "restoration": (Standby, "_is_newest_here", is_always_newest, 1, "not everything is delivered"),
    "doubt": (SqliteMirror, "note_restored", doubt_nothing, 41, "has not read back"),
    "confirmation": (
        PushedSource,
        "committed",
        confirm_when_stored,
        3,
        "was confirmed, but the service does not have it",
    ),
}
"""The method of each guard, what replaces it, a seed that then violates an invariant, and how."""
_MOST_SEEDS = 20


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_an_invariant_is_violated(monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    guarded, method, without, first, sentence = GUARDS[guard]
    monkeypatch.setattr(guarded, method, without)
    # Another order of events may need another seed.
    violations = filter(None, (violation_of(seed) for seed in range(first, first + _MOST_SEEDS)))
    assert any(sentence in violation for violation in violations)


def violation_of(seed: int) -> str:
    """Return how a simulation violates an invariant; empty if it does not."""
    try:
        simulate_hosts(seed)
    except Violation as violation:
        return str(violation)
    return ""
