"""``python -m bench [NAME…] [--rows N] [--repeat N]``."""

from __future__ import annotations

import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

import click

from bench import adaptive, cold, database, folder, growth, latency, memory, service, single, ten, unchanged
from bench.child import ChildFailed
from bench.endpoints import Wrong
from bench.figures import Report
from bench.rounds import Options

BENCHMARKS: Mapping[str, Callable[[Options], Report]] = {
    "cold": cold.measure,
    "unchanged": unchanged.measure,
    "ten": ten.measure,
    "single": single.measure,
    "adaptive": adaptive.measure,
    "service": service.measure,
    "latency": latency.measure,
    "folder": folder.measure,
    "database": database.measure,
    "memory": memory.measure,
    "growth": growth.measure,
}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(BENCHMARKS)))
@click.option(
    "--rows", default=1_000_000, show_default=True, type=click.IntRange(10_000, 90_000_000), help="Rows of the file."
)
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1), help="Rounds, as far as time allows.")
def main(names: tuple[str, ...], rows: int, repeat: int) -> None:
    """Run benchmarks beside the machine's limits and a peer.

    Slowness is no failure; wrong entries are. Temporary files are below TMPDIR, and the benchmarks measure its disk.
    """
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, polars {version('polars')}, "
        f"{platform.system()} {platform.release()}, {_processors()} processors"
    )
    failed = False
    for name in names or BENCHMARKS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder:
            try:
                BENCHMARKS[name](Options(rows=rows, repeat=repeat, folder=Path(folder))).print()
            except (Wrong, ChildFailed) as error:
                failed = True
                print(f"\n{name} could not be measured: {error}", file=sys.stderr)
        print(f"  {name} took {time.monotonic() - started:.0f} s.", flush=True)
    sys.exit(failed)


def _processors() -> int:
    return sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())


if __name__ == "__main__":
    main()
