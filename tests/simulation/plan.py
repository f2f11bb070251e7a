"""The plan of a simulation, drawn from its seed before anything runs: the sinks, and all actions with their times."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tests.simulation.service import FAULTS, OUTAGES, Fault

Kind: TypeAlias = Literal[
    "change",
    "change all",
    "touch",
    "outage",
    "storm",
    "crash",
    "stop",
    "commands",
    "foreign change",
    "source away",
    "sink deleted",
]

_KINDS: dict[Kind, float] = {
    "change": 6, "change all": 3, "touch": 1, "outage": 3, "storm": 2, "crash": 1.5, "stop": 1.5, "commands": 2,
    "foreign change": 0.7, "source away": 0.7, "sink deleted": 0.4,
}  # fmt: skip
_GAPS_SECONDS = (0.0, 0.0, 0.01, 0.1, 0.5, 2.0, 8.0)
_SINKS = (1, 1, 2, 2, 3, 4, 8, 12, 20)
_SINKS_OF_RECORDS = (1, 1, 2, 3)
_WIDEST_SHARE = 0.02
_RECORDS_SHARE = 0.12
_STOPPED_READING_SHARE = 0.4
"""The share of plans with real readers that also stop the daemon soon after all sources have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """``at``: seconds after the start. ``which`` chooses a pipeline; ``seconds``, ``fault`` and ``share`` belong to faults."""

    at: float
    kind: Kind
    which: int
    seconds: float = 0.0
    fault: Fault = "refused"
    kinds: tuple[Fault, ...] = ()
    share: float = 0.0

    def __str__(self) -> str:
        match self.kind:
            case "outage":
                return f"every request: {self.fault}, for {self.seconds:.2f} s"
            case "storm":
                return f"{self.share:.0%} of the requests: {', '.join(self.kinds)}, for {self.seconds:.2f} s"
            case "crash" | "stop":
                return f"{self.kind}, and start again after {self.seconds:.2f} s"
        return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One simulation. ``records``: real readers and the mirror in a file; else many sinks and a mirror in memory.

    ``fence``: the service refuses late writes, and some writes are late.
    """

    seed: int
    records: bool
    sinks: int
    announce: bool
    partial: bool
    replay: bool
    fence: bool
    mass_creates: bool
    max_items: int
    latency_seconds: float
    thread_seconds: float
    keys: int
    bad_keys: bool
    removes: bool
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        form = f"bulk of {self.max_items}" if self.announce else "single entries"
        mirror = "a state file" if self.records else "memory"
        return f"seed {self.seed}: {self.sinks} sinks of {self.keys} keys, {form}, mirror in {mirror}"


def plan_of(seed: int) -> Plan:
    """Return the plan of a seed; it is the same in every run and on every machine."""
    random_numbers = random.Random(f"plan {seed}")
    records = random_numbers.random() < _RECORDS_SHARE
    sinks = random_numbers.choice(_SINKS_OF_RECORDS) if records else random_numbers.choice(_SINKS)
    if not records and random_numbers.random() < _WIDEST_SHARE:
        sinks = 50
    latency_seconds = random_numbers.choice((0.001, 0.01, 0.1, 1.0))
    thread_seconds = random_numbers.choice((0.002, 0.02, 0.2))
    actions: list[Action] = []
    at = 0.0
    for _ in range(random_numbers.randint(2, 4 if sinks > 20 else 7 if records or sinks > 5 else 12)):
        at += random_numbers.choice(_GAPS_SECONDS) * random_numbers.random()
        action = _action(random_numbers, at)
        if action.kind in {"stop", "crash"} and random_numbers.random() < 0.7:
            # Stop while work is in progress: a stop without work tests little.
            actions += [replace(action, kind="change all"), replace(action, kind="commands")]
            at += random_numbers.choice((0.0, 3 * thread_seconds, 4 * latency_seconds)) * random_numbers.random()
            action = replace(action, at=at)
        actions.append(action)
        if actions[-1].kind == "outage" and random_numbers.random() < 0.5:
            # Change sources during the outage: an outage without changes tests little.
            at += actions[-1].seconds * random_numbers.random()
            actions.append(Action(at=at, kind="change all", which=0))
    if records and random_numbers.random() < _STOPPED_READING_SHARE:
        at += 1.0
        actions.append(Action(at=at, kind="change all", which=0))
        actions.append(Action(at=at + 3 * thread_seconds * random_numbers.random(), kind="stop", which=0, seconds=1.0))
    return Plan(
        seed=seed,
        records=records,
        sinks=sinks,
        announce=random_numbers.random() < 0.7,
        partial=random_numbers.random() < 0.7,
        replay=random_numbers.random() < 0.7,
        mass_creates=random_numbers.random() < 0.5,
        max_items=random_numbers.choice((1, 2, 5, 100)),
        latency_seconds=latency_seconds,
        thread_seconds=thread_seconds,
        keys=random_numbers.choice((2, 3, 6, 6) if records else (1, 2, 3, 6)),
        bad_keys=random_numbers.random() < 0.3,
        removes=random_numbers.random() < 0.5,
        fence=random_numbers.random() < 0.8,
        actions=tuple(actions),
    )


def _action(random_numbers: random.Random, at: float) -> Action:
    kind = random_numbers.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    return Action(
        at=at,
        kind=kind,
        which=random_numbers.randrange(1_000_000),
        seconds=random_numbers.choice((0.1, 1.0, 4.0, 15.0)) * random_numbers.random(),
        fault=random_numbers.choice(OUTAGES),
        kinds=tuple(random_numbers.sample(FAULTS, random_numbers.randint(1, 4))),
        share=random_numbers.choice((0.05, 0.2, 0.6)),
    )
