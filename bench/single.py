"""Single requests, one entry each: entries a second to a fast server that implements only the interface document."""

from __future__ import annotations

import json
import time

from bench import sample
from bench.child import python, run
from bench.cold import arrived, staged
from bench.counting import SINK
from bench.daemon import site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, thousands, whole
from bench.rounds import Options, surroundings_note
from bench.syslog_ng import missing, syslog_ng

OURS = "ingestd run, one entry a request"
PEER = "syslog-ng, one line a request"
TRANSPORTS = {
    "httpx": "httpx, its own transport",
    "httpx-aiohttp": "httpx-aiohttp",
    "ours": "the transport ingestd takes",
}

MOST_ROWS = 60_000
"""The maximum number of rows. One request for each of these rows takes long enough for a measurement."""


def measure(options: Options) -> Report:
    figures = Rounds()
    rows = min(options.rows, MOST_ROWS)
    csv, ndjson = options.folder / "parts.csv", options.folder / "parts.ndjson"
    sample.write_csv(csv, rows)
    sample.write_ndjson(ndjson, rows)
    lacking = missing()
    with counting_server(options.folder, "--single") as counting:
        for folder in options.rounds(figures):
            made = site(folder / "run", counting)
            with made.daemon() as child:
                used, started = child.cpu_seconds(), time.monotonic()
                counting.start_anew()
                staged(csv, folder / "run").rename(made.drop / csv.name)
                _note(figures, OURS, counting, rows, started)
                figures.add(f"{OURS} cpu", child.cpu_seconds() - used)
            if not lacking:
                with syslog_ng(folder / "peer", counting.url, "ndjson", lines=1) as (child, drop):
                    used, started = child.cpu_seconds(), time.monotonic()
                    counting.start_anew()
                    staged(ndjson, folder / "peer").rename(drop / ndjson.name)
                    _note(figures, PEER, counting, rows, started)
                    figures.add(f"{PEER} cpu", child.cpu_seconds() - used)
            path = f"{counting.sinks}/{SINK}"
            for name, value in json.loads(run(python("bench.limits.transports", counting.url, path)).output).items():
                figures.add(TRANSPORTS[name], value)
    return _report(options, figures, rows, lacking)


def _note(figures: Rounds, name: str, counting: Counting, rows: int, started: float) -> None:
    """Wait until the last entry has arrived; add the figures since ``started``, when the file was dropped."""
    arrived(name, counting, rows)
    tally = counting.tally()
    check_counted(tally, rows, sample.wrong_values(tally.sampled, rows))
    took = (tally.last_at or started) - started
    figures.add(name, rows / took)
    figures.add(f"{name} seconds", took)
    figures.add(f"{name} writes", tally.writes)


def _report(options: Options, figures: Rounds, rows: int, lacking: str) -> Report:
    lines = [
        (
            name,
            figures.spread(name, lambda value: f"{value:,.0f}".replace(",", " ")),
            figures.spread(f"{name} seconds", seconds),
            figures.spread(f"{name} cpu", seconds),
            figures.spread(f"{name} writes", whole),
        )
        for name in (OURS, PEER, *TRANSPORTS.values())
    ]
    around = options.surroundings(figures)
    return Report(
        name="single",
        title=f"single: {thousands(rows * 1000)} rows, a request each",
        header=("", "entries/s", "seconds", "CPU seconds", "requests"),
        lines=lines,
        ratios=(
            ("run over syslog-ng, a request an entry", figures.ratio(OURS, PEER), "1 or more"),
            ("the transport taken over httpx's own", figures.ratio(TRANSPORTS["ours"], TRANSPORTS["httpx"]), ""),
            (
                "the transport taken over httpx-aiohttp",
                figures.ratio(TRANSPORTS["ours"], TRANSPORTS["httpx-aiohttp"]),
                "",
            ),
        ),
        notes=[
            surroundings_note(around),
            *([f"{lacking}."] if lacking else []),
            "Transports: prepared requests, eight in flight. Responses are not decoded, classified or acknowledged.",
        ],
        summary=around
        | {"entries_per_second": {name: round(figures.median(name)) for name in (OURS, PEER) if figures.count(name)}},
    )
