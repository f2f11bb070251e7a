"""The peak resident memory of first and unchanged passes, each with all rows and with a tenth of the rows."""

from __future__ import annotations

from pathlib import Path

from bench import database, sample
from bench.daemon import Site, site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.rounds import Options, surroundings_note
from bench.unchanged import NAME, replace

COLD = "first pass"
SAME = "unchanged, same bytes"
REORDERED = "unchanged, another order"
OBJECTS = "first pass, NDJSON"
OF_CSV = (COLD, SAME, REORDERED)
TABLE = "first pass, table"
TABLE_AGAIN = "unchanged, table"
OF_TABLE = (TABLE, TABLE_AGAIN)
PASSES = (*OF_CSV, OBJECTS, *OF_TABLE)
TABLE_SHARE = 0.4
"""The rows of the SQLite table, divided by the rows of the other files: 4 million if the other files have 10 million."""
GOAL_MIB = 300.0


def measure(options: Options) -> Report:
    figures = Rounds()
    sizes = (options.rows // 10, options.rows)
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            for rows in sizes:
                _passes(figures, folder / str(rows), counting, rows)
                _objects(figures, folder / f"{rows}-ndjson", counting, rows)
                _table(figures, folder / f"{rows}-table", counting, rows)
    return _report(options, figures, sizes)


def _passes(figures: Rounds, folder: Path, counting: Counting, rows: int) -> None:
    made = site(folder, counting)
    csv = folder / NAME
    counting.start_anew()
    for name in OF_CSV:
        sample.write_csv(csv, rows, order=int(name == REORDERED))
        replace(made.drop / NAME, csv)
        _one(figures, name, rows, made)
        tally = counting.tally()
        check_counted(tally, rows, sample.wrong_values(tally.sampled, rows))
    csv.unlink()
    (made.drop / NAME).unlink()
    figures.add(f"state, {rows}", _size_mib(made.folder / "var"))


def _objects(figures: Rounds, folder: Path, counting: Counting, rows: int) -> None:
    made = site(folder, counting)
    file = made.drop / "parts.ndjson"
    counting.start_anew()
    sample.write_objects(file, rows)
    figures.add(f"NDJSON MiB, {rows}", file.stat().st_size / 2**20)
    _one(figures, OBJECTS, rows, made)
    tally = counting.tally()
    check_counted(tally, rows, sample.wrong_values(tally.sampled, rows))
    file.unlink()


def _table(figures: Rounds, folder: Path, counting: Counting, rows: int) -> None:
    folder.mkdir()
    file, present = folder / "parts.db", int(rows * TABLE_SHARE)
    database.create_table(file, present)
    source = database.source_of(f"sqlite:///{file}")
    made = site(folder / "site", counting, key=database.KEY, value=database.VALUE, source=source)
    counting.start_anew()
    for name in OF_TABLE:
        _one(figures, name, rows, made)
        tally = counting.tally()
        check_counted(tally, present, database.wrong_values(tally.sampled))
    file.unlink()


def _one(figures: Rounds, name: str, rows: int, made: Site) -> None:
    cost = made.sync()
    figures.add(f"{name}, {rows}", cost.peak_mib)
    figures.add(f"{name}, {rows} seconds", cost.seconds)


def _size_mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20


def _report(options: Options, figures: Rounds, sizes: tuple[int, int]) -> Report:
    small, large = sizes
    around = options.surroundings(figures)
    figures.values["goal"] = [GOAL_MIB] * figures.count(f"{COLD}, {large}")
    return Report(
        name="memory",
        title=f"memory: peak resident memory of `ingestd sync` at {small:,} and {large:,} rows".replace(",", " "),
        header=("MiB", f"{small} rows", f"{large} rows", "seconds at the larger"),
        lines=[
            *(
                (
                    name,
                    figures.spread(f"{name}, {small}", whole),
                    figures.spread(f"{name}, {large}", whole),
                    figures.spread(f"{name}, {large} seconds", seconds),
                )
                for name in PASSES
            ),
            (
                "the NDJSON file",
                figures.spread(f"NDJSON MiB, {small}", whole),
                figures.spread(f"NDJSON MiB, {large}", whole),
                "-",
            ),
            (
                "state folder on disk",
                figures.spread(f"state, {small}", whole),
                figures.spread(f"state, {large}", whole),
                "-",
            ),
        ],
        ratios=[
            *(
                (f"{name}: ten times the rows", figures.ratio(f"{name}, {large}", f"{name}, {small}"), "")
                for name in PASSES
            ),
            *(
                (f"{name}: peak over {GOAL_MIB:.0f} MiB", figures.ratio(f"{name}, {large}", "goal"), "1 or less")
                for name in (COLD, OBJECTS, *OF_TABLE)
            ),
        ],
        notes=[f"The table has {TABLE_SHARE:g} times the shown number of rows.", surroundings_note(around)],
        summary=around
        | {
            "peak_mib": {
                f"{name}, {rows}": round(figures.median(f"{name}, {rows}")) for name in PASSES for rows in sizes
            }
        },
    )
