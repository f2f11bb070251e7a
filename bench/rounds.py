"""The repetitions of a benchmark, its folder, and the noise of the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Rounds
from bench.limits.calibration import flush_seconds, spin

BUDGET_SECONDS = 165.0
CALIBRATION = "calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a benchmark run. ``folder``: an empty folder that only this benchmark uses; it is removed afterwards."""

    rows: int
    repeat: int
    folder: Path
    seconds: float = BUDGET_SECONDS

    def rounds(self, figures: Rounds) -> Iterator[Path]:
        """Yield an empty folder for each round. No round begins if it would probably end after ``seconds``."""
        begun = time.monotonic()
        longest = 0.0
        for number in range(self.repeat):
            started = time.monotonic()
            if number and started - begun + longest > self.seconds:
                return
            folder = self.folder / f"round{number}"
            folder.mkdir()
            figures.add(CALIBRATION, spin())
            yield folder
            longest = max(longest, time.monotonic() - started)

    def surroundings(self, figures: Rounds) -> dict[str, object]:
        """Return the facts about the run and the machine that each summary has."""
        times = figures.values[CALIBRATION]
        return {
            "rows": self.rows,
            "rounds": len(times),
            "noise": round(max(times) / min(times), 2),
            "load": round(os.getloadavg()[0], 2),
            "flush_ms": round(flush_seconds(self.folder) * 1000, 3),
        }


def surroundings_note(surroundings: dict[str, object]) -> str:
    return (
        f"{surroundings['rounds']} rounds; median (lowest-highest). Noise: the slowest run of the calibration work took "
        f"{surroundings['noise']}x as long as the fastest. Load {surroundings['load']}; "
        f"a 4 KiB flush takes {surroundings['flush_ms']} ms."
    )
