"""Further passes over the same rows: an untouched file, a file written again, and rows in another order."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench import sample
from bench.child import python, run
from bench.daemon import Site, Warm, site
from bench.endpoints import Counting, Wrong, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.rounds import Options, surroundings_note

UNTOUCHED = "untouched"
WRITTEN = "written again, same bytes"
REORDERED = "rows in another order"
POLARS = "polars reads and hashes"
CASES = (UNTOUCHED, WRITTEN, REORDERED)

NAME = "parts.csv"


def measure(options: Options) -> Report:
    figures = Rounds()
    first = options.folder / "first.csv"
    sample.write_csv(first, options.rows)
    with counting_server(options.folder) as counting:
        made = delivered_site(options, counting, first)
        turns = _turns(made.drop / NAME, first, options.rows)
        with made.warm() as warm:
            warm.sync()  # not measured, because the first pass imports further modules
            for _ in options.rounds(figures):
                for case in CASES:
                    turns[case]()
                    _command(figures, case, made, counting)
                    turns[case]()
                    _pass(figures, case, warm, counting)
                polars_alone(figures, POLARS, first)
    return _report(options, figures)


def delivered_site(options: Options, counting: Counting, csv: Path) -> Site:
    """Return a daemon that has read and delivered the file."""
    made = site(options.folder / "site", counting)
    replace(made.drop / NAME, csv)
    counting.start_anew()
    made.sync()
    tally = counting.tally()
    check_counted(tally, options.rows, sample.wrong_values(tally.sampled, options.rows))
    return made


def replace(target: Path, source: Path) -> None:
    """Replace ``target`` atomically by a copy of ``source`` with a new modification time."""
    beside = target.with_suffix(".tmp")
    shutil.copyfile(source, beside)
    beside.replace(target)


def _turns(target: Path, current: Path, rows: int) -> dict[str, Callable[[], None]]:
    orders = count(1)

    def other_order() -> None:
        nonlocal current
        current = target.parent.parent / "order.csv"
        sample.write_csv(current, rows, order=next(orders))
        replace(target, current)

    return {UNTOUCHED: lambda: None, WRITTEN: lambda: replace(target, current), REORDERED: other_order}


def _command(figures: Rounds, case: str, made: Site, counting: Counting) -> None:
    before = counting.tally()
    cost = made.sync()
    figures.add(f"{case} command", cost.seconds)
    figures.add(f"{case} peak", cost.peak_mib)
    _count_requests(figures, case, before.writes, before.lookups, counting)


def _pass(figures: Rounds, case: str, warm: Warm, counting: Counting) -> None:
    before = counting.tally()
    response = warm.sync()
    if response["exit_code"] != 0:
        raise Wrong(f"a pass over the file ({case}) ended with {response}")
    figures.add(case, response["seconds"])
    figures.add(f"{case} cpu", response["cpu_seconds"])
    _count_requests(figures, case, before.writes, before.lookups, counting)


def _count_requests(figures: Rounds, case: str, writes: int, lookups: int, counting: Counting) -> None:
    after = counting.tally()
    figures.add(f"{case} writes", after.writes - writes)
    figures.add(f"{case} lookups", after.lookups - lookups)


def polars_alone(figures: Rounds, name: str, csv: Path) -> None:
    """Measure the limit: polars alone. Adds the warm seconds as ``name``, and those of the whole command as "name command"."""
    once = run(python("bench.limits.polars_hash", str(csv), "1"))
    figures.add(f"{name} command", once.seconds)
    figures.add(f"{name} peak", once.peak_mib)
    # The first of four times is ignored, because polars starts its threads and allocates memory in it.
    often = run(python("bench.limits.polars_hash", str(csv), "4"))
    times = json.loads(often.output)
    figures.add(name, statistics.median(times["seconds"][1:]))
    figures.add(f"{name} cpu", statistics.median(times["cpu_seconds"][1:]))


def _report(options: Options, figures: Rounds) -> Report:
    lines = [
        (
            name,
            figures.spread(name, seconds),
            figures.spread(f"{name} cpu", seconds),
            figures.spread(f"{name} command", seconds),
            figures.spread(f"{name} peak", whole),
            f"{max(figures.values[f'{name} writes']):.0f}" if name in CASES else "-",
            f"{max(figures.values[f'{name} lookups']):.0f}" if name in CASES else "-",
        )
        for name in (*CASES, POLARS)
    ]
    around = options.surroundings(figures)
    return Report(
        name="unchanged",
        title=f"unchanged: a second pass over {options.rows:,} rows".replace(",", " "),
        header=("", "pass, warm", "its CPU", "whole command", "peak MiB", "writes", "lookups"),
        lines=lines,
        ratios=[
            pair
            for case in CASES
            for pair in (
                (f"{case}: pass over polars, both warm", figures.ratio(case, POLARS), "3 or less"),
                (f"{case}: their CPU time, both warm", figures.ratio(f"{case} cpu", f"{POLARS} cpu"), ""),
                (
                    f"{case}: command over polars, with start-up",
                    figures.ratio(f"{case} command", f"{POLARS} command"),
                    "",
                ),
            )
        ],
        notes=[
            surroundings_note(around),
            "Seconds. A warm pass opens and closes the state file, as the command does; the page cache is warm everywhere.",
        ],
        summary=around
        | {
            "seconds": {name: round(figures.median(name), 4) for name in (*CASES, POLARS)},
            "command_seconds": {name: round(figures.median(f"{name} command"), 4) for name in (*CASES, POLARS)},
            "writes": {case: int(max(figures.values[f"{case} writes"])) for case in CASES},
        },
    )
