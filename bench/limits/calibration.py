"""A fixed piece of work that each round repeats. The variation of its time is the noise of the machine."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from bench.figures import percentile

_BLOCK = bytes(1 << 20)


def spin() -> float:
    """Hash 64 MiB of zeros on one core, and return the seconds."""
    started = time.monotonic()
    digest = hashlib.sha256()
    for _ in range(64):
        digest.update(_BLOCK)
    digest.digest()
    return time.monotonic() - started


def flush_seconds(folder: Path, times: int = 100) -> float:
    """Return the median time of writing 4 KiB durably (fdatasync) in a folder, in seconds."""
    taken = []
    with (folder / "flush").open("wb", buffering=0) as file:
        for _ in range(times):
            started = time.monotonic()
            file.write(_BLOCK[:4096])
            os.fdatasync(file.fileno())
            taken.append(time.monotonic() - started)
    return percentile(taken, 50)
