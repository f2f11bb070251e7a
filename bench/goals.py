"""The performance goals, and a table that compares them with the measured ratios: one row for each use case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

NOT_MEASURED = "not measured"


class Goal(NamedTuple):
    """A use case, and the goal for the ratio of a benchmark that represents it.

    ``ratio``: a regular expression for the whole name of the ratio, because some names contain a number of rows.
    ``value``: the goal. The ratio should be at ``least`` or at ``most`` this value (``bound``).
    """

    case: str
    benchmark: str
    ratio: str
    bound: Literal["least", "most"]
    value: float

    def is_reached(self, measured: float) -> bool:
        return measured >= self.value if self.bound == "least" else measured <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.bound == 'least' else '≤'} {self.value:g}"


GOALS = (
    Goal("2 000 small files, archived / bare loop", "files", r"files a second over the bare loop", "least", 0.33),
    Goal("drop to visible, p50 / floor", "latency", r"p50, file kept, over inotify .*", "most", 4),
    Goal("drop to visible, p99 / floor", "latency", r"p99, file kept, over inotify .*", "most", 12),
    Goal("10 rows of 1 M changed / polars", "ten", r"pass over polars, both warm", "most", 2),
    Goal("rows in another order / polars", "unchanged", r"rows in another order: pass over polars.*", "most", 3),
    Goal("cold, run / syslog-ng reliable, CSV", "cold", r"run over syslog-ng reliable, CSV", "least", 4),
    Goal("cold, sync / SQLite inserting", "cold", r"sync over SQLite's insertion", "least", 1),
    Goal("CPU of a row, 16 M rows / 1 M", "growth", r"ingestd sync: CPU a row at .*", "most", 1.15),
    Goal("the same without start-up", "growth", r"ingestd sync: CPU of a row beyond .*", "most", 1.15),
    Goal("peak memory, CSV / 300 MiB", "memory", r"first pass: peak over .*", "most", 1),
    Goal("peak memory, NDJSON / 300 MiB", "memory", r"first pass, NDJSON: peak over .*", "most", 1),
    Goal("peak memory, table of 4 M rows / 300 MiB", "memory", r"first pass, table: peak over .*", "most", 1),
    Goal("peak memory, the table unchanged / 300 MiB", "memory", r"unchanged, table: peak over .*", "most", 1),
    Goal("ingestd --help / 0.2 s", "start", r"ingestd --help over 0\.2 s", "most", 1),
    Goal("ingestd status, a daemon runs / 0.3 s", "start", r"ingestd status, a daemon runs over 0\.3 s", "most", 1),
    Goal("ingestd status, no daemon / 0.3 s", "start", r"ingestd status, no daemon over 0\.3 s", "most", 1),
    Goal("unchanged sync / import polars", "start", r"sync over importing polars", "most", 1.2),
    Goal("first request after kill -9 / 0.5 s", "start", r"first request over 0\.5 s", "most", 1),
    Goal("one entry a request / syslog-ng", "single", r"run over syslog-ng, a request an entry", "least", 1),
    Goal("MQTT, one message in flight / 1 000 a second", "mqtt", r"one in flight: rate over .*", "least", 1),
    Goal("workspaced, single with keys / bare", "service", r"sqlite: single with keys / bare.*", "least", 2.5),
    Goal("workspaced, bulk / bare", "service", r"sqlite: bulk / bare", "least", 0.7),
    Goal("workspaced on PostgreSQL, single / pgbench", "scale", r"single / pgbench", "least", 0.6),
    Goal("two hosts: processor time of an entry / one", "scale", r"the same, processor time of an entry", "most", 1.1),
    Goal("two hosts on one sink / one", "scale", r"two hosts, one sink / one host", "least", 0.8),
    Goal("bulk of 500 / 40 000 a second", "scale", r"bulk of 500 / .*", "least", 1),
    Goal("p99 of a read beside writes / 50 ms", "scale", r"p99 of a read beside writes / .*", "most", 1),
    Goal("export of a large sink / SQLite", "scale", r"export of the sink / SQLite", "most", 2),
    Goal("list of a large sink / SQLite", "scale", r"list of the sink / SQLite", "most", 2),
    Goal("search of a large sink / SQLite", "scale", r"search of the sink / SQLite", "most", 2),
    Goal("idle, 200 pipelines: processor / 0.1 %", "idle", r"200 pipelines: processor over .*", "most", 1),
    Goal("idle, 200 pipelines: memory / 90 MiB", "idle", r"200 pipelines: memory over 90 MiB", "most", 1),
)


def beside_goals(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return a row for each goal: case, measured ratio, goal, and whether the goal is reached.

    ``results``: the benchmarks of each result file, as `bench.comparison.read_results` returns them. If several files have a
    ratio, the last file counts.
    """
    rows = []
    for goal in GOALS:
        found = [ratio for benchmarks in results for ratio in _ratios(benchmarks, goal)]
        if not found:
            rows.append((goal.case, NOT_MEASURED, str(goal), ""))
            continue
        median, low, high = (float(found[-1][part]) for part in ("median", "lowest", "highest"))
        reached = "yes" if goal.is_reached(median) else "no"
        rows.append((goal.case, f"{median:.2f} ({low:.2f}-{high:.2f})", str(goal), reached))
    return rows


def _ratios(benchmarks: Mapping[str, Any], goal: Goal) -> list[Mapping[str, Any]]:
    ratios: Mapping[str, Mapping[str, Any]] = benchmarks.get(goal.benchmark, {}).get("ratios", {})
    return [ratio for name, ratio in ratios.items() if re.fullmatch(goal.ratio, name) and ratio["median"] is not None]
