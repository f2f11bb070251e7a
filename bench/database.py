"""A table of a million rows: read whole (compared with the bare driver and dlt), polled for changes, and mapped."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.child import python, run
from bench.daemon import Warm, site
from bench.endpoints import Counting, Wrong, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.postgres import POSTGRES_URL
from bench.rounds import Options, surroundings_note

TABLE = "ingestd_bench_parts"
KEY, VALUE = "{part}", "{mass} {rev} {at}"
WIDE = "ingestd_bench_wide"
WIDE_TEXT = 20_000
WIDE_SHARE = 20
"""The rows of `TABLE` divided by the rows of `WIDE`. A row of `WIDE` has 20 kB: 1 GB if `TABLE` has a million rows."""
CONNECTOR, BARE, WIDE_ROWS = "connector", "bare", "20 kB rows"
UNCHANGED, POLL, COUNT, DLT = "unchanged pass", "xmin poll, unchanged", "count(*)", "dlt, pyarrow"
EXPRESSIONS, BY_HAND = "expressions", "the same by hand in polars"
POSTGRESQL = "PostgreSQL"
MOST_MIB = 300e6 / 2**20


def measure(options: Options) -> Report:
    figures = Rounds()
    with _databases(options) as urls, counting_server(options.folder) as counting, ExitStack() as stack:
        passes = {kind: stack.enter_context(_delivered(options, counting, kind, url)) for kind, url in urls.items()}
        for _ in options.rounds(figures):
            for kind, url in urls.items():
                for how in (CONNECTOR, BARE):
                    _read(figures, f"{kind}, {how}", how=how, url=url, table=TABLE, rows=options.rows)
                _read(
                    figures, f"{kind}, {WIDE_ROWS}", how=CONNECTOR, url=url, table=WIDE, rows=options.rows // WIDE_SHARE
                )
                _pass(figures, f"{kind}, {UNCHANGED}", passes[kind], counting)
            if POSTGRESQL in urls:
                _postgresql(figures, urls[POSTGRESQL], options.rows)
            _expressions(figures, options.rows)
        return _report(options, figures, list(urls))


def _postgresql(figures: Rounds, url: str, rows: int) -> None:
    if importlib.util.find_spec("dlt") is not None:
        _read(figures, f"{POSTGRESQL}, {DLT}", how="dlt", url=url, table=TABLE, rows=rows)
    _read(figures, f"{POSTGRESQL}, {POLL}", how="poll", url=url, table=TABLE, rows=0, times=6)
    _read(figures, f"{POSTGRESQL}, {COUNT}", how="count", url=url, table=TABLE, rows=rows, times=6)


def _read(figures: Rounds, name: str, *, how: str, url: str, table: str, rows: int, times: int = 2) -> None:
    # `_child` ignores the first reading, in which polars starts its threads and allocates memory.
    response = _child(figures, name, "bench.limits.database_rows", how, url, table, str(times))
    if response["rows"] != rows:
        raise Wrong(f"{name}: {response['rows']} rows were read of {rows}")


def _child(figures: Rounds, name: str, *command: str) -> dict[str, Any]:
    cost = run(python(*command))
    response: dict[str, Any] = json.loads(cost.output.splitlines()[-1])
    figures.add(name, statistics.median(response["seconds"][1:]))
    figures.add(f"{name} cpu", statistics.median(response["cpu_seconds"][1:]))
    figures.add(f"{name} peak", cost.peak_mib)
    return response


def _expressions(figures: Rounds, rows: int) -> None:
    responses = [
        _child(figures, name, "bench.limits.expressions", how, str(rows), "4")
        for name, how in ((EXPRESSIONS, "mapping"), (BY_HAND, "polars"))
    ]
    if len({(response["rows"], response["hash"]) for response in responses}) > 1:
        raise Wrong(f"expressions: the entries differ from those of polars: {responses}")


@contextmanager
def _delivered(options: Options, counting: Counting, kind: str, url: str) -> Iterator[Warm]:
    """Deliver the table, and yield a process that makes further passes over it."""
    made = site(options.folder / kind, counting, key=KEY, value=VALUE, label=kind, source=source_of(url))
    counting.start_anew()
    with made.warm() as warm:
        _checked(warm, kind)
        tally = counting.tally()
        check_counted(tally, options.rows, wrong_values(tally.sampled))
        yield warm


def _pass(figures: Rounds, name: str, warm: Warm, counting: Counting) -> None:
    before = counting.tally()
    response = _checked(warm, name)
    after = counting.tally()
    figures.add(name, response["seconds"])
    figures.add(f"{name} cpu", response["cpu_seconds"])
    figures.add(f"{name} requests", after.writes + after.lookups - before.writes - before.lookups)


def _checked(warm: Warm, name: str) -> dict[str, Any]:
    response = warm.sync()
    if response["exit_code"] != 0:
        raise Wrong(f"a pass over {name} ended with {response}")
    return response


def create_table(file: Path, rows: int) -> None:
    """Create `TABLE` with this number of rows in a SQLite file."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            f"CREATE TABLE {TABLE} AS {_numbers(rows)} SELECT printf('P%08d', i) AS part, i % 50 AS rev, i * 0.1 AS x,"
            " printf('%.2f', i * 0.37) AS mass, datetime(1767225600 + i, 'unixepoch') AS at,"
            " CASE WHEN i % 3 THEN 'unit ' || i END AS unit FROM n"
        )


def source_of(url: str) -> dict[str, str]:
    """Return the settings of a source that reads `TABLE`; `KEY` and `VALUE` are its mapping."""
    return {"connector": "database", "url": url, "table": TABLE}


def wrong_values(sampled: Sequence[tuple[str, Any]]) -> list[str]:
    """Return the keys of delivered entries with another revision than their row."""
    return [key for key, value in sampled if str(value).split()[1] != str(int(key[1:]) % 50)]


def _numbers(rows: int) -> str:
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"


@contextmanager
def _databases(options: Options) -> Iterator[Mapping[str, str]]:
    """Create both tables in each database; yield the URLs of the databases, by kind."""
    file = options.folder / "bench.db"
    create_table(file, options.rows)
    with sqlite3.connect(file) as connection:
        connection.execute(
            f"CREATE TABLE {WIDE} AS {_numbers(options.rows)} SELECT i, hex(zeroblob({WIDE_TEXT // 2})) AS v FROM n"
            f" WHERE i <= {options.rows // WIDE_SHARE}"
        )
    connection.close()
    urls = {"SQLite": f"sqlite:///{file}"}
    postgres = os.environ.get(POSTGRES_URL)
    if postgres is None:
        yield urls
        return
    with psycopg.connect(postgres, autocommit=True) as server:
        try:
            server.execute(
                f"CREATE UNLOGGED TABLE {TABLE} AS SELECT 'P' || lpad(i::text, 8, '0') AS part, i % 50 AS rev,"
                " i * 0.1::float8 AS x, round((i * 0.37)::numeric, 2) AS mass,"
                " timestamptz '2026-01-01' + i * interval '1 s' AS at,"
                f" CASE WHEN i % 3 <> 0 THEN 'unit ' || i END AS unit FROM generate_series(1, {options.rows}) i".encode()
            )
            server.execute(
                f"CREATE UNLOGGED TABLE {WIDE} AS SELECT i, repeat('0', {WIDE_TEXT}) AS v"
                f" FROM generate_series(1, {options.rows // WIDE_SHARE}) i".encode()
            )
            yield {**urls, POSTGRESQL: postgres}
        finally:
            server.execute(f"DROP TABLE IF EXISTS {TABLE}, {WIDE}".encode())


def _report(options: Options, figures: Rounds, kinds: list[str]) -> Report:
    names = [
        *(f"{kind}, {what}" for kind in kinds for what in (CONNECTOR, BARE, WIDE_ROWS, UNCHANGED)),
        *(f"{POSTGRESQL}, {what}" for what in (DLT, POLL, COUNT) if POSTGRESQL in kinds),
        EXPRESSIONS,
        BY_HAND,
    ]
    around = options.surroundings(figures)
    return Report(
        name="database",
        title=f"database: a table of {options.rows:,} rows with six columns".replace(",", " "),
        header=("", "seconds", "its CPU", "peak MiB", "requests"),
        lines=[
            (
                name,
                figures.spread(name, seconds),
                figures.spread(f"{name} cpu", seconds),
                figures.spread(f"{name} peak", whole),
                figures.spread(f"{name} requests", whole),
            )
            for name in names
        ],
        ratios=[*(pair for kind in kinds for pair in _ratios(figures, kind)), *_others(figures, kinds)],
        notes=[
            surroundings_note(around),
            "Bare: the driver's server-side cursor of text columns; polars gets 50 000 rows at a time.",
            "SQLite without WAL: the connector first copies the table or file. Writers wait for a reading by the bare driver.",
            "For a million rows, the 20 kB rows are 1 GB. An unchanged pass reads all rows and opens the state file.",
            *([] if figures.count(f"{POSTGRESQL}, {DLT}") else ["dlt: not installed."]),
        ],
        summary=around
        | {"seconds": {name: round(figures.median(name), 4) for name in names if figures.count(name)}}
        | {"requests": {kind: max(figures.values[f"{kind}, {UNCHANGED} requests"]) for kind in kinds}},
    )


def _ratios(figures: Rounds, kind: str) -> list[tuple[str, float | None, str]]:
    connector, bare = f"{kind}, {CONNECTOR}", f"{kind}, {BARE}"
    server = kind == POSTGRESQL
    return [
        (f"{kind}: rate over the bare cursor", figures.ratio(bare, connector), "0.8 or more" if server else ""),
        (f"{kind}: bare CPU over the connector's", figures.ratio(f"{bare} cpu", f"{connector} cpu"), ""),
        (
            f"{kind}: unchanged pass over the bare cursor",
            figures.ratio(f"{kind}, {UNCHANGED}", bare),
            "2 or less, 0 requests" if server else "",
        ),
        (f"{kind}: peak over 300 MB", figures.median(f"{connector} peak") / MOST_MIB, "1 or less"),
        (
            f"{kind}: peak of 20 kB rows over 300 MB",
            figures.median(f"{kind}, {WIDE_ROWS} peak") / MOST_MIB,
            "1 or less",
        ),
    ]


def _others(figures: Rounds, kinds: list[str]) -> list[tuple[str, float | None, str]]:
    dlt, poll, count = (f"{POSTGRESQL}, {what}" for what in (DLT, POLL, COUNT))
    of_server = [
        (
            f"{POSTGRESQL}: rate over dlt's backend pyarrow",
            figures.ratio(dlt, f"{POSTGRESQL}, {CONNECTOR}"),
            "2 or more",
        ),
        (f"{POSTGRESQL}: unchanged xmin poll over count(*)", figures.ratio(poll, count), "2.5 or less"),
    ]
    expressions = ("expressions: rate over polars by hand", figures.ratio(BY_HAND, EXPRESSIONS), "0.5 or more")
    return [*(of_server if POSTGRESQL in kinds else []), expressions]
