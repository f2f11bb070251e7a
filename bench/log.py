"""Lines appended to a followed file: each after the previous line was received, and many at once; also with syslog-ng."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import sample
from bench.child import ChildFailed, Running
from bench.cold import arrived
from bench.daemon import site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, milliseconds, percentile, seconds, thousands, whole
from bench.rounds import Options, surroundings_note
from bench.syslog_ng import missing, syslog_ng

OURS = "ingestd run, connector log"
PEER = "syslog-ng, reliable buffer"
SINGLE_LINES = 200

_AT_ONCE = 0.3
"""The number of lines in the file, as a share of the requested rows."""
_SEED = 300
_GAP_SECONDS = (0.005, 0.025)
_DEADLINE_SECONDS = 20.0


def measure(options: Options) -> Report:
    figures = Rounds()
    ndjson = options.folder / "lines.ndjson"
    sample.write_ndjson(ndjson, int(options.rows * _AT_ONCE))
    lines = ndjson.read_bytes().splitlines(keepends=True)
    lacking = missing()
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            with _ours(folder / "ours", counting) as follower:
                _appended(figures, OURS, follower, counting, lines)
            if not lacking:
                with syslog_ng(folder / "peer", counting.url, "ndjson", follow_seconds=0.01) as (child, drop):
                    _appended(figures, PEER, (child, drop / "lines.ndjson"), counting, lines)
    return _report(options, figures, len(lines), lacking)


@contextmanager
def _ours(folder: Path, counting: Counting) -> Iterator[tuple[Running, Path]]:
    source = {"connector": "log", "path": "drop", "pattern": "*.ndjson"}
    made = site(folder, counting, key="{key}", value="{value}", source=source, schedule={})
    with made.daemon() as child:
        yield child, made.drop / "lines.ndjson"


def _appended(
    figures: Rounds, name: str, follower: tuple[Running, Path], counting: Counting, lines: list[bytes]
) -> None:
    """Append the first `SINGLE_LINES` lines one by one, then all other lines at once; add the figures."""
    child, log = follower
    rng = random.Random(_SEED)
    counting.start_anew()
    waits = []
    with log.open("ab", buffering=0) as file:
        for number, line in enumerate(lines[:SINGLE_LINES]):
            started = time.monotonic()
            file.write(line)
            wait = _received(name, counting, number + 1) - started
            if number:  # the first line's time includes the creation of the sink
                waits.append(wait)
            time.sleep(rng.uniform(*_GAP_SECONDS))
        used, started = child.cpu_seconds(), time.monotonic()
        file.write(b"".join(lines[SINGLE_LINES:]))
        arrived(name, counting, len(lines))
    tally = counting.tally()
    check_counted(tally, len(lines), sample.wrong_values(tally.sampled, len(lines)))
    took = (tally.last_at or started) - started
    figures.add(name, (len(lines) - SINGLE_LINES) / took)
    figures.add(f"{name} seconds", took)
    figures.add(f"{name} cpu", child.cpu_seconds() - used)
    figures.add(f"{name} repeated", tally.entries - tally.distinct)
    for kind, value in (("p50", percentile(waits, 50)), ("p99", percentile(waits, 99))):
        figures.add(f"{name} {kind}", value)


def _received(name: str, counting: Counting, count: int) -> float:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        tally = counting.tally()
        if tally.distinct >= count and tally.last_at is not None:
            return tally.last_at
        time.sleep(0.001)
    raise ChildFailed(f"{name}: line {count} was not received within {_DEADLINE_SECONDS:.0f} s")


def _report(options: Options, figures: Rounds, lines: int, lacking: str) -> Report:
    names = [name for name in (OURS, PEER) if figures.count(name)]
    around = options.surroundings(figures)
    return Report(
        name="log",
        title=f"log: {SINGLE_LINES} lines one by one and {lines - SINGLE_LINES} at once",
        header=("", "1000 lines/s", "seconds", "CPU seconds", "twice", "p50 ms, one line", "p99 ms"),
        lines=[
            (
                name,
                figures.spread(name, thousands),
                figures.spread(f"{name} seconds", seconds),
                figures.spread(f"{name} cpu", seconds),
                figures.spread(f"{name} repeated", whole),
                figures.spread(f"{name} p50", milliseconds),
                figures.spread(f"{name} p99", milliseconds),
            )
            for name in names
        ],
        ratios=(
            ("at once: rate over syslog-ng", figures.ratio(OURS, PEER), "1 or more"),
            ("one line: p50 over syslog-ng", figures.ratio(f"{OURS} p50", f"{PEER} p50"), "1 or less"),
            ("one line: p99 over syslog-ng", figures.ratio(f"{OURS} p99", f"{PEER} p99"), ""),
        ),
        notes=[
            surroundings_note(around),
            "p50 and p99: from the append until the server has the line. syslog-ng polls the file every 10 ms,",
            "and sends an incomplete batch after 50 ms.",
            *([lacking + "."] if lacking else []),
        ],
        summary=around
        | {
            "rows": lines,
            "lines_per_second": {name: round(figures.median(name)) for name in names},
            "p50_ms": {name: round(figures.median(f"{name} p50") * 1000, 2) for name in names},
        },
    )
