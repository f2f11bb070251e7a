"""The plan of a simulation with several hosts, drawn from its seed: the hosts, the sources, and all actions with their times."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.simulation.service import FAULTS, Fault

HostKind: TypeAlias = Literal[
    "change",
    "file",
    "message",
    "break",
    "cut",
    "approve",
    "kill",
    "freeze",
    "stop",
    "lose disk",
    "cut off",
    "step down",
    "promote",
    "outage",
    "storm",
    "place away",
    "place slow",
    "lose shipment",
]

_KINDS: dict[HostKind, float] = {
    "change": 5, "file": 2, "message": 2, "break": 1, "cut": 1.5, "approve": 1, "kill": 2, "freeze": 2.5, "stop": 1,
    "lose disk": 1, "cut off": 1.5, "step down": 1, "promote": 1, "outage": 1, "storm": 1.5, "place away": 1, "place slow": 0.7,
    "lose shipment": 1,
}  # fmt: skip
_FAILURES = {"kill", "freeze", "stop", "lose disk", "cut off", "step down", "promote"}
_OUTAGES: tuple[Fault, ...] = ("refused", "timeout before", "503", "502")
_GAPS_SECONDS = (0.0, 0.1, 0.5, 2.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAction:
    """``at``: seconds after the start. ``which`` chooses a pipeline or a host: most often the active one.

    ``leases``: how long a failure lasts, in leases.
    """

    at: float
    kind: HostKind
    which: int
    leases: float
    fault: Fault
    kinds: tuple[Fault, ...]

    def __str__(self) -> str:
        lasts = f", for {self.leases:.2f} leases" if self.kind in _FAILURES else ""
        return f"{self.kind}{lasts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """One simulation. ``clocks``: for each host, how wrong its wall clock is, and its uptime, in seconds."""

    seed: int
    clocks: tuple[tuple[float, float], ...]
    lease_seconds: int
    ship_seconds: float
    keep: int
    announce: bool
    partial: bool
    replay: bool
    max_items: int
    latency_seconds: float
    thread_seconds: float
    keys: int
    removes: bool
    actions: tuple[HostAction, ...]

    def __str__(self) -> str:
        form = f"bulk of {self.max_items}" if self.announce else "single entries"
        return (
            f"seed {self.seed}: {len(self.clocks)} hosts, lease of {self.lease_seconds} s, shipments every "
            f"{self.ship_seconds} s, {form}"
        )


def host_plan_of(seed: int) -> HostPlan:
    """Return the plan of a seed; it is the same in every run and on every machine."""
    random_numbers = random.Random(f"host plan {seed}")
    hosts = random_numbers.choice((2, 2, 3))
    lease_seconds = random_numbers.choice((3, 10, 10))
    actions: list[HostAction] = []
    at = 0.0
    for _ in range(random_numbers.randint(4, 10)):
        at += random_numbers.choice(_GAPS_SECONDS) * random_numbers.random()
        kind = random_numbers.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
        if kind in _FAILURES:
            # Fail while work is in progress, and change the sources meanwhile: a take-over without work tests little.
            actions.append(_action(random_numbers, at, "change"))
            at += random_numbers.choice((0.0, 0.05, 0.5)) * random_numbers.random()
        actions.append(_action(random_numbers, at, kind))
        if kind in _FAILURES and random_numbers.random() < 0.7:
            at += lease_seconds * actions[-1].leases * random_numbers.random()
            actions.append(
                _action(random_numbers, at, random_numbers.choice(("change", "file", "message", "break", "cut")))
            )
    return HostPlan(
        seed=seed,
        clocks=tuple(
            (random_numbers.choice((0.0, 3_600.0, -3_600.0)), random_numbers.uniform(10, 1e6)) for _ in range(hosts)
        ),
        lease_seconds=lease_seconds,
        ship_seconds=random_numbers.choice((1.0, 3.0, 10.0)),
        keep=random_numbers.choice((1, 2, 3)),
        announce=random_numbers.random() < 0.7,
        partial=random_numbers.random() < 0.7,
        replay=random_numbers.random() < 0.7,
        max_items=random_numbers.choice((1, 2, 5, 100)),
        latency_seconds=random_numbers.choice((0.001, 0.01, 0.1)),
        thread_seconds=random_numbers.choice((0.002, 0.02, 0.2)),
        keys=random_numbers.choice((3, 4, 6)),
        removes=random_numbers.random() < 0.7,
        actions=tuple(actions),
    )


def _action(random_numbers: random.Random, at: float, kind: HostKind) -> HostAction:
    return HostAction(
        at=at,
        kind=kind,
        which=random_numbers.randrange(1_000_000),
        leases=random_numbers.choice((0.2, 0.8, 1.5, 4.0)) * random_numbers.uniform(0.5, 1.5),
        fault=random_numbers.choice(_OUTAGES),
        kinds=tuple(random_numbers.sample(FAULTS, random_numbers.randint(1, 4))),
    )
