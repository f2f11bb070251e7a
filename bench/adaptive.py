"""The adaptive limits of ingestd: the number of concurrent requests, and the request rate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import sample
from bench.child import python, run, running
from bench.counting import SINK, WORKSPACE
from bench.daemon import site
from bench.endpoints import Endpoint, Wrong
from bench.figures import Report, Rounds, whole
from bench.rounds import Options, surroundings_note

KNEE, LATENCY_SECONDS = 20, 0.05
RATE = 150
KNEE_ROWS, RATE_ROWS = 8_000, 3_000
FIXED = (8, 12, 16, 20, 24, 32)

STEADY = "ingestd, steady state: entries/s"
BEST = "best fixed concurrency: entries/s"
BEST_AT = "best fixed concurrency: requests in flight"
ACCEPTED = "service limited to 150 requests/s, steady state: accepted entries/s"
REFUSED = "service limited to 150 requests/s, steady state: refused per 1,000 requests"
SHARE = "steady-state rate divided by the rate of the best fixed concurrency"


def measure(options: Options) -> Report:
    figures = Rounds()
    for folder in options.rounds(figures):
        with _slowing(folder, "knee", str(KNEE), str(LATENCY_SECONDS)) as service:
            accepted, _ = _delivered(folder / "knee", service, KNEE_ROWS)
            figures.add(STEADY, _per_second(accepted[len(accepted) // 2 :]))
            path = f"{service.sinks}/{SINK}"
            rates = json.loads(run(python("bench.limits.fixed", service.url + path, *map(str, FIXED))).output)
            best = max(rates, key=lambda number: float(rates[number]))
            figures.add(BEST, rates[best])
            figures.add(BEST_AT, float(best))
        with _slowing(folder, "rate", str(RATE)) as service:
            accepted, refused = _delivered(folder / "rate", service, RATE_ROWS)
            steady = accepted[len(accepted) // 2 :]
            late = [moment for moment in refused if moment >= steady[0]]
            figures.add(ACCEPTED, _per_second(steady))
            figures.add(REFUSED, 1000 * len(late) / (len(late) + len(steady)))
    around = options.surroundings(figures)
    names = (STEADY, BEST, BEST_AT, ACCEPTED, REFUSED)
    return Report(
        name="adaptive",
        title=f"adaptive: a service that slows down at {KNEE} requests in flight, and one that refuses above {RATE}/s",
        header=("", "measured"),
        lines=[(name, figures.spread(name, whole)) for name in names],
        ratios=(
            (SHARE, figures.ratio(STEADY, BEST), "0.9 or more"),
            ("share of requests that were refused", figures.median(REFUSED) / 1000, "less than 0.05"),
        ),
        notes=[surroundings_note(around), "Steady state: the second half of the entries."],
        summary=around | {name: round(figures.median(name), 1) for name in names},
    )


@contextmanager
def _slowing(folder: Path, *words: str) -> Iterator[Endpoint]:
    with running(python("bench.slowing", *words), log=folder / f"{words[0]}.log") as child:
        yield Endpoint(url=f"http://127.0.0.1:{child.line()}", api_key="bench", workspace=WORKSPACE, child=child)


def _delivered(folder: Path, service: Endpoint, rows: int) -> tuple[list[float], list[float]]:
    """Return the times of accepted and of refused writes, sorted."""
    made = site(folder, service)
    sample.write_csv(made.drop / "parts.csv", rows)
    made.sync()
    tally = service.ask("GET", "/tally")
    if len(tally["accepted"]) != rows:
        raise Wrong(f"{len(tally['accepted'])} of {rows} entries were accepted")
    return sorted(tally["accepted"]), sorted(tally["refused"])


def _per_second(moments: list[float]) -> float:
    return (len(moments) - 1) / (moments[-1] - moments[0])
