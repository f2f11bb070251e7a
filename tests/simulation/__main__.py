"""Runs simulations from the command line: `make simulate SEED=n` for one with its trace, `make simulate SEEDS=n` for many.

With `HOSTS=yes`, several hosts share a configuration.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeAlias

from tests.simulation.host_world import HostWorld, simulate_hosts
from tests.simulation.traced_world import Violation
from tests.simulation.world import World, simulate

Run: TypeAlias = Callable[[int], World | HostWorld]

_CHUNK = 50


def main() -> int:
    """Run the simulations of the arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="simulate")
    parser.add_argument("--seed", type=int, help="one seed, with its trace")
    parser.add_argument("--first", type=int, default=1, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--hosts", action="store_true", help="several hosts with --standby")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    run = simulate_hosts if chosen.hosts else simulate
    return _one(run, chosen.seed) if chosen.seed is not None else _many(run, chosen)


def _one(run: Run, seed: int) -> int:
    try:
        world = run(seed)
    except Violation as violation:
        print(violation)
        return 1
    print(world.plan, *world.lines(), sep="\n")
    return 0


def _many(run: Run, chosen: argparse.Namespace) -> int:
    first, seeds, processes = chosen.first, chosen.seeds, chosen.processes
    began = time.monotonic()
    done = failed = 0
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(
            partial(_some, run),
            [range(at, min(at + _CHUNK, first + seeds)) for at in range(first, first + seeds, _CHUNK)],
        ):
            done += _CHUNK
            for seed, reason in found:
                failed += 1
                print(f"seed {seed}: {reason}", flush=True)
            if done % 1000 == 0:
                print(f"{done} seeds, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"{seeds} seeds from {first} on: {failed} failed, {time.monotonic() - began:.0f} s with {processes} processes"
    )
    return 1 if failed else 0


def _some(run: Run, seeds: range) -> list[tuple[int, str]]:
    failed = []
    for seed in seeds:
        try:
            run(seed)
        except Violation as violation:
            failed.append((seed, _reason(violation)))
    return failed


def _reason(violation: Violation) -> str:
    """Return the last paragraph but one, in one line."""
    return " ".join(str(violation).rpartition("\nOnce more")[0].rpartition("\n\n")[2].split())


if __name__ == "__main__":
    sys.exit(main())
