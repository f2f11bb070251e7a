"""The service on PostgreSQL: one and two hosts, bulk and reads, compared with pgbench; large sinks compared with SQLite.

The server of INGESTD_BENCH_POSTGRES_URL must run on this machine, because its processor time is measured. pgbench has 20 clients
and uses the schema of the service. Each of its transactions upserts an entry and inserts an audit row.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.child import ChildFailed, python, run
from bench.endpoints import (
    Endpoint,
    Wrong,
    check_loaded,
    count_stored,
    counting_server,
    further_host,
    walk_pages,
    workspace_service,
)
from bench.figures import Report, Rounds, milliseconds, seconds, whole
from bench.postgres import POSTGRES_URL, empty_database, server_cpu_seconds, writing_transactions
from bench.rounds import Options, surroundings_note

CONNECTIONS = 64
"""The number of connections to each host."""
BULK_CONNECTIONS = 4
ITEMS = 500
SINGLES = 12_000
HOOKED = 4_000
BULK = 200_000
BULK_GOAL = 40_000
LABEL = "Parts"
DATABASES = ("sqlite", "postgres")
PGBENCH_CLIENTS = 20
PGBENCH_EACH = 500
READ_SECONDS = 0.05
_FILL = 5_000
_PAGES = 50
_REPEATED = 5
_TRANSACTION = """
BEGIN;
INSERT INTO data_sink_entry AS e (number, sink, key, value, data_type, id, id_supplied, version, created_at, updated_at,
                                  created_by, updated_by)
VALUES (nextval('entry_number'), 1, 'P' || gen_random_uuid(), '12345 kg', 'scalar', gen_random_uuid(), 0, 1, 1795000000000,
        1795000000000, 'bench', 'bench')
ON CONFLICT (sink, key) DO UPDATE SET value = excluded.value, version = e.version + 1, updated_at = excluded.updated_at;
INSERT INTO audit_row (at, principal, key_id, client_id, request_id, address, action, resource_id, resource_label, workspace_id,
                       changed, counts)
VALUES (1795000000000, 'bench', 'key', 'bench', gen_random_uuid(), '127.0.0.1', 'data_sink.entry.created', gen_random_uuid(),
        'P', gen_random_uuid(), '[]', '{}');
END;
"""
PGBENCH = "pgbench, 20 clients"
SINGLE = "one host"
TWO = "two hosts, a workspace each"
SHARED = "two hosts, one sink"
HOOK = "one host, with a webhook"
READ = "one host, beside reads"
BULKS = "one host, 500 a request"


@dataclass(slots=True)
class _Bench:
    figures: Rounds = field(default_factory=Rounds)
    seeds: random.Random = field(default_factory=lambda: random.Random(20_260))

    def pgbench(self, folder: Path) -> None:
        script = folder / "pgbench.sql"
        script.write_text(_TRANSACTION)
        with empty_database() as url, _service(folder / "schema", url) as service:
            service.ask("POST", service.sinks, {"label": LABEL})
            before = server_cpu_seconds()
            command = ["pgbench", "-n", "-M", "prepared", "-c", str(PGBENCH_CLIENTS), "-j", "2"]
            done = subprocess.run(
                [*command, "-t", str(PGBENCH_EACH), "-f", str(script), url], capture_output=True, text=True, check=False
            )
            rate = re.search(r"tps = ([0-9.]+)", done.stdout)
            if done.returncode or not rate:
                raise ChildFailed(f"pgbench ended with {done.returncode}: {done.stderr[-2000:]}")
            used = server_cpu_seconds() - before
        self.figures.add(PGBENCH, float(rate[1]))
        self.figures.add(f"{PGBENCH} server", used / (PGBENCH_CLIENTS * PGBENCH_EACH) * 1e6)

    def served(
        self, name: str, folder: Path, *, hosts: int = 1, sinks: int = 1, kind: str = "single", count: int
    ) -> None:
        """Write entries through ``hosts`` processes of the service: all into one sink, or each into its own of ``sinks``."""
        seed = self.seeds.getrandbits(32)
        place = folder / name.replace(" ", "-")
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(empty_database())
            service = stack.enter_context(_service(place, url))
            others = [stack.enter_context(further_host(service, place, **_environment(url))) for _ in range(1, hosts)]
            if name == HOOK:
                receiver = stack.enter_context(counting_server(place))
                hook = {"url": f"{receiver.url}/events", "dataEvents": ["data_sink.entry.*"]}
                service.ask("POST", "/v1/webhooks", hook)
            running = [service, *others]
            targets = [_with_sink(host, number) for number, host in enumerate(running[:sinks])]
            if sinks == 1:
                targets = [(host, targets[0][1]) for host in running]
            used = _Used(running)
            cost = run(
                python(
                    "bench.load",
                    str((BULK_CONNECTIONS if kind.isdigit() else CONNECTIONS) * hosts),
                    kind,
                    str(seed),
                    str(count),
                    *(f"{host.url}{path}/mass" for host, path in targets),
                ),
                BENCH_API_KEY=service.api_key,
            )
            used.stop()
            _check(targets[:sinks], seed, count)
        outcome = json.loads(cost.output)
        self.figures.add(name, outcome["entries"] / outcome["seconds"])
        self.figures.add(f"{name} service", used.service / count * 1e6)
        self.figures.add(f"{name} server", used.server / count * 1e6)
        self.figures.add(f"{name} cpu", (used.service + used.server) / count * 1e6)
        self.figures.add(f"{name} group", count / used.commits)
        self.figures.add(f"{name} p99", outcome["p99"])
        if name == READ:
            self.figures.add("read p99", outcome["read_p99"])
            self.figures.add("read goal", READ_SECONDS)
        if name == BULKS:
            self.figures.add("bulk goal", BULK_GOAL)

    def views(self, folder: Path, rows: int) -> None:
        """Export, list and search a sink of ``rows`` entries, alternately on both databases."""
        with contextlib.ExitStack() as stack:
            sinks = {}
            for database in DATABASES:
                url = stack.enter_context(empty_database()) if database == "postgres" else ""
                sinks[database] = _with_sink(stack.enter_context(_service(folder / database, url)), 0)
                _fill(*sinks[database], rows)
            for name, view in VIEWS.items():
                for _ in range(_REPEATED):
                    for database, (service, sink) in sinks.items():
                        started = time.monotonic()
                        view(service, sink, rows)
                        self.figures.add(f"{database} {name}", time.monotonic() - started)


class _Used:
    """The processor time of the hosts and of the PostgreSQL server until `stop`, in seconds, and the number of commits."""

    def __init__(self, hosts: Sequence[Endpoint]) -> None:
        self._hosts = hosts
        self.service, self.server, self.commits = 0.0, 0.0, 0
        self.service, self.server, self.commits = self._now()

    def stop(self) -> None:
        service, server, commits = self._now()
        self.service, self.server, self.commits = service - self.service, server - self.server, commits - self.commits

    def _now(self) -> tuple[float, float, int]:
        service = sum(host.child.family_cpu_seconds() for host in self._hosts)
        return service, server_cpu_seconds(), writing_transactions()


def _environment(url: str) -> dict[str, str]:
    allowed = {"WORKSPACED_ALLOW_HTTP": "true", "WORKSPACED_ALLOWED_CIDRS": "127.0.0.0/8"}
    return {**allowed, **({"WORKSPACED_DATABASE_URL": url} if url else {})}


def _service(folder: Path, url: str) -> contextlib.AbstractContextManager[Endpoint]:
    return workspace_service(folder, **_environment(url))


def _with_sink(host: Endpoint, number: int) -> tuple[Endpoint, str]:
    """Create a sink; return its host and path. If ``number`` is not 0, the sink is in a new workspace."""
    if number:
        host = replace(host, workspace=host.ask("POST", "/v1/workspace", {"label": f"Bench {number}"})["id"])
    return host, f"{host.sinks}/{host.ask('POST', host.sinks, {'label': LABEL})['id']}"


def _fill(service: Endpoint, sink: str, rows: int) -> None:
    for start in range(0, rows, _FILL):
        ends = min(start + _FILL, rows)
        entries = [{"key": f"p{index:08d}.mass", "value": f"{index}.5 kg"} for index in range(start, ends)]
        service.ask("POST", f"{sink}/mass", entries)


def _check(targets: Sequence[tuple[Endpoint, str]], seed: int, count: int) -> None:
    """Raise `Wrong` if a single sink does not have the entries, or several sinks together have another number of entries."""
    if len(targets) == 1:
        check_loaded(targets[0][0], LABEL, seed, count)
    elif (held := sum(count_stored(host, path) for host, path in targets)) != count:
        raise Wrong(f"the sinks hold {held} entries of {count}")


def _export(service: Endpoint, sink: str, rows: int) -> None:
    if (held := count_stored(service, sink)) != rows:
        raise Wrong(f"the export has {held} entries of {rows}")


def _list(service: Endpoint, sink: str, _rows: int) -> None:
    walk_pages(service, f"{sink}?take=100&sortedBy=key", most=_PAGES)


def _search(service: Endpoint, sink: str, _rows: int) -> None:
    walk_pages(service, f"{sink}?take=100&search=none+has+it&searchIn=all", most=1_000)


VIEWS: Mapping[str, Callable[[Endpoint, str, int], None]] = {"export": _export, "list": _list, "search": _search}
"""The operations that `_Bench.views` measures, by name."""


def measure(options: Options) -> Report:
    if not os.environ.get(POSTGRES_URL):
        raise ChildFailed(f"{POSTGRES_URL} names no server")
    bench = _Bench()
    bench.views(options.folder, options.rows)
    for folder in options.rounds(bench.figures):
        bench.pgbench(folder)
        bench.served(SINGLE, folder, count=SINGLES)
        bench.served(TWO, folder, hosts=2, sinks=2, count=SINGLES)
        bench.served(SHARED, folder, hosts=2, count=SINGLES)
        bench.served(HOOK, folder, count=HOOKED)
        bench.served(READ, folder, kind="read", count=SINGLES)
        bench.served(BULKS, folder, kind=str(ITEMS), count=BULK)
    return _report(bench.figures, options)


def _report(figures: Rounds, options: Options) -> Report:
    around = options.surroundings(figures)
    lines = [
        (
            name,
            figures.spread(name, whole),
            *(figures.spread(f"{name} {part}", whole) for part in ("service", "server", "cpu", "group")),
            figures.spread(f"{name} p99", milliseconds),
        )
        for name in (PGBENCH, SINGLE, TWO, SHARED, HOOK, READ, BULKS)
    ]
    views = [
        (f"{database}: {view}, s", figures.spread(f"{database} {view}", seconds), "", "", "", "", "")
        for view in VIEWS
        for database in DATABASES
    ]
    return Report(
        name="scale",
        title=f"The service on PostgreSQL: {SINGLES} entries one by one on {CONNECTIONS} connections to each host; {BULK} in "
        f"bulk; a sink of {options.rows}",
        header=("", "entries/s", "service, µs/entry", "server, µs/entry", "both", "entries/commit", "p99 ms"),
        lines=[*lines, *views],
        ratios=(
            ("single / pgbench", figures.ratio(SINGLE, PGBENCH), "0.6 or more"),
            ("two hosts, two workspaces / one host", figures.ratio(TWO, SINGLE), "1.6 or more, on four processors"),
            ("the same, processor time of an entry", figures.ratio(f"{TWO} cpu", f"{SINGLE} cpu"), "1.1 or less"),
            ("two hosts, one sink / one host", figures.ratio(SHARED, SINGLE), "0.8 or more"),
            ("with a webhook / without", figures.ratio(HOOK, SINGLE), "-"),
            (f"bulk of {ITEMS} / {BULK_GOAL} a second", figures.ratio(BULKS, "bulk goal"), "1 or more"),
            ("p99 of a read beside writes / 50 ms", figures.ratio("read p99", "read goal"), "1 or less"),
            *(
                (f"{view} of the sink / SQLite", figures.ratio(f"postgres {view}", f"sqlite {view}"), "2 or less")
                for view in VIEWS
            ),
        ),
        notes=(
            surroundings_note(around),
            "Responses of the service and of pgbench came after a durable commit; PostgreSQL flushes as its defaults say.",
            "Processor time is of all hosts and all processes of the PostgreSQL server, without the pgbench program.",
        ),
        summary={**around, "figures": {name: round(figures.median(name), 3) for name in figures.values}},
    )
