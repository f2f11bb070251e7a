"""Writes to the service: single entries on 64 connections, and 5 000 entries a request, compared with the bare database.

Each figure is measured with a new service, an empty database and new keys. `bench.load` creates the load in a separate process.
The table shows the share of a processor that this process uses.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.child import python, run
from bench.endpoints import check_loaded, workspace_service
from bench.figures import Report, Rounds, milliseconds, thousands, whole
from bench.postgres import POSTGRES_URL, empty_database
from bench.rounds import Options, surroundings_note

CONNECTIONS = 64
BULK_CONNECTIONS = 2
ITEMS = 5_000
SINGLES = 12_000
UNGROUPED = 4_000
BARE_SINGLES = 4_000
LABEL = "Parts"


@dataclass(slots=True)
class _Bench:
    figures: Rounds = field(default_factory=Rounds)
    seeds: random.Random = field(default_factory=lambda: random.Random(20_260))

    def bare(self, database: str, kind: str, count: int, folder: Path) -> None:
        seed = self._seed()
        with _database(database) as url:
            if url:
                cost = run(python("bench.limits.postgres_service", kind, str(seed), str(count)), BENCH_DATABASE_URL=url)
            else:
                file = folder / f"bare-{kind}.db"
                cost = run(python("bench.limits.sqlite_service", str(file), kind, str(seed), str(count)))
        outcome = json.loads(cost.output)
        if outcome["entries"] != count:
            raise AssertionError(f"the bare database holds {outcome['entries']} of {count} entries")
        self._add(f"{database} bare {kind}", outcome["seconds"], count, cost.cpu_seconds)

    def served(self, name: str, kind: str, count: int, folder: Path, **environment: str) -> None:
        seed = self._seed()
        with _database(name.split(maxsplit=1)[0]) as url:
            if url:
                environment["WORKSPACED_DATABASE_URL"] = url
            with workspace_service(folder / name.replace(" ", "-"), **environment) as service:
                sink = service.ask("POST", service.sinks, {"label": LABEL})["id"]
                connections = str(CONNECTIONS if kind in {"single", "keyed"} else BULK_CONNECTIONS)
                path = f"{service.sinks}/{sink}/mass"
                before = service.child.family_cpu_seconds()
                cost = run(
                    python("bench.load", connections, kind, str(seed), str(count), service.url + path),
                    BENCH_API_KEY=service.api_key,
                )
                used = service.child.family_cpu_seconds() - before
                check_loaded(service, LABEL, seed, count)
        outcome = json.loads(cost.output)
        self._add(name, outcome["seconds"], outcome["entries"], used)
        self.figures.add(f"{name} client", outcome["cpu_seconds"] / outcome["seconds"])
        self.figures.add(f"{name} p50", outcome["p50"])
        self.figures.add(f"{name} p99", outcome["p99"])

    def _seed(self) -> int:
        return self.seeds.getrandbits(32)

    def _add(self, name: str, seconds: float, entries: float, cpu: float) -> None:
        self.figures.add(name, entries / seconds)
        self.figures.add(f"{name} cpu", cpu / entries * 1e6)


def _database(kind: str) -> contextlib.AbstractContextManager[str]:
    """Create an empty PostgreSQL database until the context ends; yield its URL, or an empty text for SQLite."""
    return empty_database() if kind == "postgres" else contextlib.nullcontext("")


def measure(options: Options) -> Report:
    bench = _Bench()
    databases = ["sqlite", *(["postgres"] if os.environ.get(POSTGRES_URL) else [])]
    bulk = min(options.rows, 200_000)
    for folder in options.rounds(bench.figures):
        for database in databases:
            bench.bare(database, "single", BARE_SINGLES, folder)
            bench.served(f"{database} ungrouped", "single", UNGROUPED, folder, WORKSPACED_GROUP_CALLERS="1")
            bench.served(f"{database} single", "single", SINGLES, folder)
            bench.served(f"{database} keyed", "keyed", SINGLES, folder)
            bench.bare(database, str(ITEMS), bulk, folder)
            bench.served(f"{database} bulk", str(ITEMS), bulk, folder)
    return _report(bench.figures, options, databases, bulk)


def _report(figures: Rounds, options: Options, databases: list[str], bulk: int) -> Report:
    names: Mapping[str, str] = {
        "bare single": "bare database, a commit each",
        "ungrouped": "commits not shared",
        "single": "single",
        "keyed": "each request with an Idempotency-Key",
        f"bare {ITEMS}": f"bare database, {ITEMS} a commit",
        "bulk": f"{ITEMS} a request",
    }
    lines = []
    ratios: list[tuple[str, float | None, str]] = []
    for database in databases:
        for name, label in names.items():
            full = f"{database} {name}"
            if full not in figures.values:
                continue
            latency = f"{full} p50" in figures.values
            lines.append(
                (
                    f"{database}: {label}",
                    figures.spread(full, thousands if "bulk" in name or str(ITEMS) in name else whole),
                    whole(figures.median(f"{full} cpu")),
                    f"{milliseconds(figures.median(f'{full} p50'))} / {milliseconds(figures.median(f'{full} p99'))}"
                    if latency
                    else "-",
                    f"{figures.median(f'{full} client'):.2f}" if latency else "-",
                )
            )
        single, ungrouped = f"{database} single", f"{database} ungrouped"
        ratios += [
            (f"{database}: single / ungrouped", figures.ratio(single, ungrouped), "3 or more"),
            (f"{database}: single / bare single commits", figures.ratio(single, f"{database} bare single"), "-"),
            (
                f"{database}: single with keys / bare single commits",
                figures.ratio(f"{database} keyed", f"{database} bare single"),
                "2.5 or more",
            ),
            (f"{database}: with keys / without", figures.ratio(f"{database} keyed", single), "-"),
            (f"{database}: bulk / bare", figures.ratio(f"{database} bulk", f"{database} bare {ITEMS}"), "0.7 or more"),
            (
                f"{database}: CPU of an entry, ungrouped / single",
                figures.ratio(f"{ungrouped} cpu", f"{single} cpu"),
                "-",
            ),
            (
                f"{database}: CPU of an entry, bulk / bare",
                figures.ratio(f"{database} bulk cpu", f"{database} bare {ITEMS} cpu"),
                "-",
            ),
        ]
    around = options.surroundings(figures)
    return Report(
        name="service",
        title=f"The service's writes: {SINGLES} entries one by one on {CONNECTIONS} connections; {bulk} in bulk",
        header=("", "entries/s (bulk: k/s)", "CPU µs/entry", "p50 / p99 ms", "client's share of a processor"),
        lines=lines,
        ratios=ratios,
        notes=(
            surroundings_note(around),
            "Every response came after the commit was durable. The rate limit is off (WORKSPACED_REQUESTS_PER_MINUTE=0); keys,",
            "audit log, metrics and authentication are on. PostgreSQL only if " + POSTGRES_URL + " names a server.",
        ),
        summary={**around, "figures": {name: round(figures.median(name), 1) for name in figures.values}},
    )
