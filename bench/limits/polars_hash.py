"""polars alone: reads a CSV file as text, and hashes the fields of each row that the mapping uses.

``python -m bench.limits.polars_hash FILE TIMES`` prints wall and CPU seconds of each reading, without imports.
"""

from __future__ import annotations

import json
import sys
import time

import polars as pl

from bench.sample import USED


def read_and_hash(path: str) -> int:
    """Read and hash a file. Return the number of hashes, so that no work can be optimised away."""
    hashes = pl.read_csv(path, infer_schema=False).select(pl.struct(USED).hash().alias("hash"))["hash"]
    return hashes.len()


def main(path: str, times: int) -> None:
    seconds, cpu_seconds, rows = [], [], 0
    for _ in range(times):
        started, used = time.monotonic(), time.process_time()
        rows = read_and_hash(path)
        seconds.append(time.monotonic() - started)
        cpu_seconds.append(time.process_time() - used)
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
