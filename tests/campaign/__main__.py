"""Runs campaigns: `make campaign SEED=n STEPS=k` for one seed, `make campaign SEEDS=n FIRST=m` for several, and `make chaos`."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from tests.campaign.network_chaos import run_chaos
from tests.campaign.world import Difference, run_campaign
from tests.support.needed_programs import CHAOS_NEEDS, install_command, missing_needs


def main() -> int:
    """Run the seeds of the arguments; return the exit code. The folder of a seed with a difference remains."""
    parser = argparse.ArgumentParser(prog="campaign")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--steps", type=int, default=60, help="the steps of each seed")
    parser.add_argument(
        "--chaos-minutes", type=float, help="run over three machines instead, for this number of minutes"
    )
    chosen = parser.parse_args()
    if chosen.chaos_minutes is not None and (lacks := _missing()):
        print(lacks)
        return 1
    failed = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        folder, began = Path(tempfile.mkdtemp(prefix=f"campaign-{seed}-")), time.monotonic()
        try:
            if chosen.chaos_minutes is None:
                log = run_campaign(folder, seed, chosen.steps)
            else:
                chaos = run_chaos(folder, seed, minutes=chosen.chaos_minutes)
                log = chaos.log
                print("\n".join(log), chaos.summary(), sep="\n")
        except (Difference, AssertionError) as error:
            failed += 1
            print(f"seed {seed} differs:\n{error}", flush=True)
            continue
        shutil.rmtree(folder)
        compared = sum(line.endswith("equal") for line in log)
        print(
            f"seed {seed}: {len(log) - 2} steps, {compared} comparisons, {time.monotonic() - began:.0f} s", flush=True
        )
    print(f"{chosen.seeds} seeds: {failed} with a difference")
    return 1 if failed else 0


def _missing() -> str:
    """Return what the chaos needs and this machine lacks, as sentences; empty if it lacks nothing."""
    if os.geteuid() != 0:
        return "The chaos makes network namespaces and mounts small disks. Run it as root."
    missing = missing_needs(CHAOS_NEEDS)
    if not missing:
        return ""
    return f"The chaos needs {', '.join(need.tests for need in missing)}. Install them: {install_command(missing)}"


if __name__ == "__main__":
    raise SystemExit(main())
