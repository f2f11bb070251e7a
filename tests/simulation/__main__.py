"""Runs simulations from the command line: `make simulate SEED=n` for one with its trace, `make simulate SEEDS=n` for many."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.world import Violation, simulate

_CHUNK = 50


def main() -> int:
    """Run the simulations of the arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="simulate")
    parser.add_argument("--seed", type=int, help="one seed, with its trace")
    parser.add_argument("--first", type=int, default=1, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    return _one(chosen.seed) if chosen.seed is not None else _many(chosen.first, chosen.seeds, chosen.processes)


def _one(seed: int) -> int:
    try:
        world = simulate(seed)
    except Violation as violation:
        print(violation)
        return 1
    print(world.plan, *world.lines(), sep="\n")
    return 0


def _many(first: int, seeds: int, processes: int) -> int:
    began = time.monotonic()
    done = failed = 0
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(
            _some, [range(at, min(at + _CHUNK, first + seeds)) for at in range(first, first + seeds, _CHUNK)]
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


def _some(seeds: range) -> list[tuple[int, str]]:
    failed = []
    for seed in seeds:
        try:
            simulate(seed)
        except Violation as violation:
            failed.append((seed, _reason(violation)))
    return failed


def _reason(violation: Violation) -> str:
    """Return the last paragraph but one, in one line."""
    return " ".join(str(violation).rpartition("\nOnce more")[0].rpartition("\n\n")[2].split())


if __name__ == "__main__":
    sys.exit(main())
