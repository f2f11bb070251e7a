"""Runs benchmarks (``python -m bench [NAME…]``), or reads their result files (``compare``, ``goals``, ``chart``)."""

from __future__ import annotations

import json
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from bench import (
    adaptive,
    cold,
    database,
    files,
    folder,
    growth,
    idle,
    latency,
    log,
    memory,
    mqtt,
    pages,
    peers,
    scale,
    service,
    single,
    start,
    ten,
    unchanged,
)
from bench.chart import draw
from bench.child import ChildFailed
from bench.comparison import ResultsUnusable, read_results
from bench.comparison import compare as compare_results
from bench.endpoints import Wrong
from bench.figures import Report, table
from bench.flame import NotRecorded, recording
from bench.goals import beside_goals
from bench.rounds import BUDGET_SECONDS, Options
from bench.soak import main as soak

BENCHMARKS: Mapping[str, Callable[[Options], Report]] = {
    "cold": cold.measure,
    "unchanged": unchanged.measure,
    "ten": ten.measure,
    "single": single.measure,
    "adaptive": adaptive.measure,
    "service": service.measure,
    "scale": scale.measure,
    "latency": latency.measure,
    "log": log.measure,
    "mqtt": mqtt.measure,
    "files": files.measure,
    "folder": folder.measure,
    "database": database.measure,
    "memory": memory.measure,
    "peers": peers.measure,
    "growth": growth.measure,
    "start": start.measure,
    "idle": idle.measure,
    "pages": pages.measure,
}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice([*BENCHMARKS, "all"]))
@click.option(
    "--rows", default=1_000_000, show_default=True, type=click.IntRange(10_000, 90_000_000), help="Rows of the file."
)
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1), help="Rounds, as far as time allows.")
@click.option(
    "--seconds", default=BUDGET_SECONDS, show_default=True, help="A round that would exceed this time is left out."
)
@click.option(
    "--json",
    "results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write all figures to FILE.",
)
def main(names: tuple[str, ...], rows: int, repeat: int, seconds: float, results: Path | None) -> None:
    """Run benchmarks, and compare ingestd with the machine's limits and with other products.

    A benchmark fails if wrong entries arrive, never because it is slow. Temporary files are below TMPDIR; its disk is measured.
    """
    machine = (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, polars {version('polars')}, "
        f"{platform.system()} {platform.release()}, {_processors()} processors"
    )
    print(machine)
    failed = False
    found: dict[str, Any] = {}
    for name in BENCHMARKS if not names or "all" in names else names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder:
            try:
                report = BENCHMARKS[name](Options(rows=rows, repeat=repeat, seconds=seconds, folder=Path(folder)))
                report.print()
                found[name] = report.results()
            except (Wrong, ChildFailed) as error:
                failed = True
                print(f"\n{name} could not be measured: {error}", file=sys.stderr)
        print(f"  {name} took {time.monotonic() - started:.0f} s.", flush=True)
        if results is not None:  # after each benchmark, so that an interrupted run keeps its figures
            results.write_text(json.dumps({"machine": machine, "benchmarks": found}, indent=1) + "\n")
    _print_goals([found])
    sys.exit(failed)


_RESULTS = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command()
@click.argument("results", nargs=-1, required=True, type=_RESULTS)
def goals(results: tuple[Path, ...]) -> None:
    """Print the goals, and the ratios in files of --json. A ratio in a later file replaces the same one in an earlier file."""
    try:
        _print_goals([read_results(path) for path in results])
    except ResultsUnusable as error:
        raise click.ClickException(str(error)) from error


def _print_goals(results: Sequence[Mapping[str, Any]]) -> None:
    print("\nThe goals, and the medians of all rounds with the lowest and the highest:")
    table(("case", "measured", "goal", "reached"), beside_goals(results))


@click.command()
@click.argument("before", type=_RESULTS)
@click.argument("after", type=_RESULTS)
def compare(before: Path, after: Path) -> None:
    """Print the ratios that differ between two files of --json by more than their spread. Exit code 1: a ratio got slower."""
    try:
        differences = compare_results(read_results(before), read_results(after))
    except ResultsUnusable as error:
        raise click.ClickException(str(error)) from error
    for difference in differences:
        print(difference)
    if not differences:
        print("No ratio differs by more than its spread.")
    sys.exit(any(difference.direction == "slower" for difference in differences))


@click.command()
@click.argument("results", type=_RESULTS)
@click.argument("picture", type=click.Path(path_type=Path, dir_okay=False))
def chart(results: Path, picture: Path) -> None:
    """Draw a file of --json as an SVG picture."""
    try:
        picture.write_text(draw(read_results(results)))
    except ResultsUnusable as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("name", type=click.Choice([*BENCHMARKS]))
@click.option(
    "--rows", default=1_000_000, show_default=True, type=click.IntRange(10_000, 90_000_000), help="Rows of the file."
)
@click.option(
    "--folder",
    default=Path("build/flame"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the flame graphs go.",
)
def profile(name: str, rows: int, folder: Path) -> None:
    """Run one round of a benchmark, and write a flame graph of each daemon, service and command that it measures."""
    try:
        with recording(folder, name) as found, tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as temporary:
            BENCHMARKS[name](Options(rows=rows, repeat=1, folder=Path(temporary)))
    except (NotRecorded, Wrong, ChildFailed) as error:
        raise click.ClickException(str(error)) from error
    for picture in found.made:
        print(picture)


def _processors() -> int:
    return sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(sys.argv[2:], prog_name="python -m bench compare")
    if sys.argv[1:2] == ["goals"]:
        goals(sys.argv[2:], prog_name="python -m bench goals")
    if sys.argv[1:2] == ["chart"]:
        chart(sys.argv[2:], prog_name="python -m bench chart")
    if sys.argv[1:2] == ["profile"]:
        profile(sys.argv[2:], prog_name="python -m bench profile")
    if sys.argv[1:2] == ["soak"]:
        soak(sys.argv[2:], prog_name="python -m bench soak")
    main()
