"""A thousand simulations: nothing is lost, no older value returns, nothing is sent twice, no lane waits for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from ingestd.client.writer import RisingWriter
from ingestd.daemon.control.server import ControlServer
from ingestd.delivery import limiter
from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from tests.simulation.plan import Action, plan_of
from tests.simulation.service import Fault
from tests.simulation.traced_world import Violation
from tests.simulation.world import simulate
from tests.support.bulk_service import BulkService

SEEDS = 1_000
CHUNK = 25


@cache
def counts_of(seed: int) -> Counter[str]:
    """Simulate a seed, once, and return what has happened."""
    return simulate(seed).counts


@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_simulations_end_with_everything_delivered(first: int) -> None:
    for seed in range(first, first + CHUNK):
        counts_of(seed)


def test_a_seed_always_gives_the_same_simulation() -> None:
    for seed in (3, 4, 5):
        assert simulate(seed).lines() == simulate(seed).lines()


def test_two_hundred_seeds_stop_and_kill_the_daemon_during_commands_and_readings_of_every_kind() -> None:
    counts = sum((counts_of(seed) for seed in range(1, 201)), Counter[str]())
    for what in (
        "commands with a response",
        "commands during a stop",
        "commands cut off by a kill",
        "clients that left or were silent",
        "repairs",
        "readings ended by a stop",
        "late arrivals",
    ):
        assert counts[what] >= 3, f"{what}: {counts}"


@pytest.mark.parametrize("status", ["401", "403"])
@pytest.mark.parametrize("seed", range(1, 11))
def test_delivery_resumes_within_ten_seconds_after_access_is_granted(seed: int, status: Fault) -> None:
    outage = Action(at=1.0, kind="outage", which=0, fault=status, seconds=300.0)
    change = Action(at=2.0, kind="change all", which=0)
    plan = replace(plan_of(seed), records=False, sinks=20, latency_seconds=0.001, thread_seconds=0.002)
    world = simulate(replace(plan, actions=(outage, change)))
    times = {line: at for at, line in world.trace if isinstance(line, str) and line.startswith("**")}
    delivered = [at for at, event in world.trace if isinstance(event, EntriesDelivered)]
    assert times["** the service is back"] < min(delivered) <= times["** the service is back"] + 10
    # The other lanes follow at once: one probe serves all of them.
    assert max(delivered) <= min(delivered) + 5
    probes = [line for at, line in world.trace if f"({status})" in str(line) and at > times["** change all"] + 60]
    assert 240 / 10 <= len(probes) <= 240 / 5 + 20, "one probe within ten seconds, for any number of waiting lanes"


class ReplacedEvent(ChangeSignal):
    """An earlier implementation of the limiter's event: a change between reading the condition and this wait is lost."""

    def __init__(self) -> None:
        super().__init__()
        self._event = asyncio.Event()

    def notify(self) -> None:
        super().notify()
        self._event.set()
        self._event = asyncio.Event()

    async def wait_past(self, generation: int, *, seconds: float | None = None) -> bool:  # noqa: ARG002 - that is the defect
        event = self._event
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True


def find_violation(seeds: range) -> str:
    for seed in seeds:
        try:
            simulate(seed)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_lost_wake_up_is_found_within_two_hundred_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "ChangeSignal", ReplacedEvent)
    found = find_violation(range(201, 401))
    assert "not everything is delivered" in found
    assert "waits in Limiter.wait_for_turn" in found


async def accept_when_it_runs(self: ControlServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An earlier implementation of the control server's accept: a stop misses a connection before its task has run."""
    task = asyncio.current_task()
    assert task is not None
    self._connections.add(task)
    task.add_done_callback(self._connections.discard)
    await self._serve(reader, writer)


def test_a_connection_that_is_accepted_during_a_stop_is_found_within_two_hundred_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ControlServer, "_accept", accept_when_it_runs)
    found = find_violation(range(101, 301))
    assert "the daemon has ended, but its connection is still open" in found


def refuse_no_late_write(*_: object) -> None:
    """An earlier service: it compares the writers of requests with nothing."""


def never_raise(*_: object) -> None:
    """An earlier client: every request of a process has the same attempt."""


@pytest.mark.parametrize(
    ("guarded", "method", "without"),
    [(BulkService, "_newer", refuse_no_late_write), (RisingWriter, "raise_past", never_raise)],
    ids=["service", "client"],
)
def test_without_a_part_of_the_fence_an_older_value_returns_within_a_hundred_seeds(
    monkeypatch: pytest.MonkeyPatch, guarded: type, method: str, without: Callable[..., None]
) -> None:
    monkeypatch.setattr(guarded, method, without)
    assert "back to" in find_violation(range(201, 301))
