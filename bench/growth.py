"""The cost of a row as a load grows: first loads of a CSV with a sixteenth, a quarter and all of the rows."""

from __future__ import annotations

import json
from pathlib import Path

from bench import sample
from bench.child import Cost, python, run
from bench.daemon import site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.rounds import Options, surroundings_note

SYNC = "ingestd sync"
SQLITE = "SQLite inserts the rows"
_COLUMNS = ("seconds", "CPU", "written", "size", "peak")


def measure(options: Options) -> Report:
    figures = Rounds()
    sizes = (options.rows // 16, options.rows // 4, options.rows)
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            for rows in sizes:
                _load(figures, folder / str(rows), counting, rows)
            for name in (SYNC, SQLITE):
                _further(figures, name, sizes)
    return _report(options, figures, sizes)


def _load(figures: Rounds, folder: Path, counting: Counting, rows: int) -> None:
    made = site(folder, counting)
    csv = made.drop / "parts.csv"
    sample.write_csv(csv, rows)
    counting.start_anew()
    cost = made.sync()
    tally = counting.tally()
    check_counted(tally, rows, sample.wrong_values(tally.sampled, rows))
    _add(figures, SYNC, rows, cost, seconds=cost.seconds, size=_mib(made.folder / "var"))
    limit = folder / "limit"
    limit.mkdir()
    cost = run(python("bench.limits.sqlite_insert", str(csv), str(limit / "limit.db")))
    _add(figures, SQLITE, rows, cost, seconds=json.loads(cost.output)["seconds"], size=_mib(limit))
    for file in (csv, *limit.iterdir(), *(made.folder / "var").iterdir()):
        file.unlink()


def _add(figures: Rounds, name: str, rows: int, cost: Cost, *, seconds: float, size: float) -> None:
    values = (seconds, cost.cpu_seconds, cost.written_mib, size, cost.peak_mib)
    for column, value in zip(_COLUMNS, values, strict=True):
        figures.add(f"{name} {column}, {rows}", value)
    figures.add(f"{name} CPU a row, {rows}", cost.cpu_seconds / rows)


def _further(figures: Rounds, name: str, sizes: tuple[int, ...]) -> None:
    """Add the CPU time of a further row: from the smallest to the middle size, and from there to the largest. No start-up."""
    used = [figures.values[f"{name} CPU, {rows}"][-1] for rows in sizes]
    for part in (0, 1):
        figures.add(f"{name} further {part}", (used[part + 1] - used[part]) / (sizes[part + 1] - sizes[part]))


def _mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20


def _report(options: Options, figures: Rounds, sizes: tuple[int, ...]) -> Report:
    around = options.surroundings(figures)
    shown = (seconds, seconds, whole, whole, whole)
    smallest, middle, largest = sizes
    return Report(
        name="growth",
        title=f"growth: the first load of {', '.join(f'{rows:,}'.replace(',', ' ') for rows in sizes)} rows",
        header=("", "rows", "seconds", "CPU seconds", "written MiB", "on disk MiB", "peak MiB"),
        lines=[
            (
                name,
                str(rows),
                *(
                    figures.spread(f"{name} {column}, {rows}", show)
                    for column, show in zip(_COLUMNS, shown, strict=True)
                ),
            )
            for rows in sizes
            for name in (SYNC, SQLITE)
        ],
        ratios=[
            *(
                (
                    f"{name}: CPU a row at {largest} over {smallest}",
                    figures.ratio(f"{name} CPU a row, {largest}", f"{name} CPU a row, {smallest}"),
                    "",
                )
                for name in (SYNC, SQLITE)
            ),
            *(
                (
                    f"{name}: CPU of a row beyond {middle} over one beyond {smallest}",
                    figures.ratio(f"{name} further 1", f"{name} further 0"),
                    "1.15 or less" if name == SYNC else "",
                )
                for name in (SYNC, SQLITE)
            ),
            *(
                (
                    f"CPU of SQLite over CPU of sync at {rows}",
                    figures.ratio(f"{SQLITE} CPU, {rows}", f"{SYNC} CPU, {rows}"),
                    "1 or more",
                )
                for rows in sizes
            ),
        ],
        notes=[
            surroundings_note(around),
            "CPU includes start-up and reading the file. Seconds of SQLite are of the insertions only.",
        ],
        summary=around
        | {
            f"{name} {column}": {str(rows): round(figures.median(f"{name} {column}, {rows}"), 2) for rows in sizes}
            for name in (SYNC, SQLITE)
            for column in _COLUMNS
        },
    )
