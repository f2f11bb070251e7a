"""Ten changed rows in a file of a million: what is sent, and how long it takes."""

from __future__ import annotations

import random

from bench import sample
from bench.daemon import Site, Warm
from bench.endpoints import Counting, Wrong, counting_server
from bench.figures import Report, Rounds, seconds
from bench.rounds import Options, surroundings_note
from bench.unchanged import NAME, delivered_site, polars_alone, replace

CHANGED = 10
COMMAND = "whole command"
PASS = "pass, warm"
POLARS = "polars reads and hashes"

_SEED = 10


def measure(options: Options) -> Report:
    figures = Rounds()
    rng = random.Random(_SEED)
    csv = options.folder / "parts.csv"
    sample.write_csv(csv, options.rows)
    revised: dict[int, str] = {}
    with counting_server(options.folder) as counting:
        made = delivered_site(options, counting, csv)
        with made.warm() as warm:
            warm.sync()  # not measured, because the first pass imports further modules
            for folder in options.rounds(figures):
                for name in (COMMAND, PASS):
                    revised |= _ten_more(rng, revised, options.rows)
                    sample.write_csv(folder / NAME, options.rows, revised=revised)
                    replace(made.drop / NAME, folder / NAME)
                    _measure_one(figures, name, made, warm, counting)
                polars_alone(figures, POLARS, csv)
    return _report(options, figures)


def _ten_more(rng: random.Random, before: dict[int, str], rows: int) -> dict[int, str]:
    numbers = [number for number in rng.sample(range(rows), CHANGED + len(before)) if number not in before]
    return {number: f"revised {len(before)}, by hand" for number in numbers[:CHANGED]}


def _measure_one(figures: Rounds, name: str, made: Site, warm: Warm, counting: Counting) -> None:
    before = counting.tally()
    if name == COMMAND:
        cost = made.sync()
        figures.add(name, cost.seconds)
        figures.add(f"{name} cpu", cost.cpu_seconds)
    else:
        response = warm.sync()
        figures.add(name, float(response["seconds"]))
        figures.add(f"{name} cpu", float(response["cpu_seconds"]))
    after = counting.tally()
    changed = [value for _, value in after.sampled[len(before.sampled) :]]
    if not all("by hand" in (value or "") for value in changed):
        raise Wrong(f"entries were sent that were not changed: {changed[:5]}")
    figures.add(f"{name} writes", after.writes - before.writes)
    figures.add(f"{name} entries", after.entries - before.entries)
    figures.add(f"{name} lookups", after.lookups - before.lookups)
    figures.add(f"{name} bytes", after.bytes - before.bytes)


def _report(options: Options, figures: Rounds) -> Report:
    names = (COMMAND, PASS)
    counted = ("writes", "entries", "lookups", "bytes")
    lines = [
        (
            name,
            figures.spread(name, seconds),
            figures.spread(f"{name} cpu", seconds),
            *(f"{max(figures.values[f'{name} {what}']):.0f}" if name in names else "-" for what in counted),
        )
        for name in (*names, POLARS)
    ]
    around = options.surroundings(figures)
    return Report(
        name="ten",
        title=f"ten: {CHANGED} rows of {options.rows:,} changed".replace(",", " "),
        header=("", "seconds", "CPU", "writes", "entries", "lookups", "bytes sent"),
        lines=lines,
        ratios=(
            ("write requests for ten rows", max(figures.values[f"{PASS} writes"]), "1"),
            ("entries that travelled", max(figures.values[f"{PASS} entries"]), "10"),
            ("pass over polars, both warm", figures.ratio(PASS, POLARS), "2 or less"),
            ("their CPU time, both warm", figures.ratio(f"{PASS} cpu", f"{POLARS} cpu"), ""),
        ),
        notes=[surroundings_note(around), "Counts: the maximum of all rounds. Lookups: which workspace, which sink."],
        summary=around
        | {"seconds": {name: round(figures.median(name), 4) for name in (*names, POLARS)}}
        | {what: int(max(max(figures.values[f"{name} {what}"]) for name in names)) for what in counted},
    )
