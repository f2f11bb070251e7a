"""Runs campaigns: `make campaign SEED=n STEPS=k` for one seed, `make campaign SEEDS=n FIRST=m` for several."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from tests.campaign.world import Difference, run_campaign


def main() -> int:
    """Run the seeds of the arguments; return the exit code. The folder of a seed with a difference remains."""
    parser = argparse.ArgumentParser(prog="campaign")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--steps", type=int, default=60, help="the steps of each seed")
    chosen = parser.parse_args()
    failed = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        folder, began = Path(tempfile.mkdtemp(prefix=f"campaign-{seed}-")), time.monotonic()
        try:
            log = run_campaign(folder, seed, chosen.steps)
        except (Difference, AssertionError) as error:
            failed += 1
            print(f"seed {seed} differs:\n{error}", flush=True)
            continue
        shutil.rmtree(folder)
        compared = sum(line.endswith("equal") for line in log)
        print(
            f"seed {seed}: {chosen.steps} steps, {compared} comparisons, {time.monotonic() - began:.0f} s", flush=True
        )
    print(f"{chosen.seeds} seeds: {failed} with a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
