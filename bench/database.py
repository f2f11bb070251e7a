"""A table of a million rows is read whole: by the connector, and by the bare driver's text cursor into polars."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from bench.child import python, run
from bench.endpoints import Wrong
from bench.figures import Report, Rounds, seconds, whole
from bench.rounds import Options, surroundings_note
from bench.service import POSTGRES_URL

TABLE = "ingestd_bench_parts"
WIDE = "ingestd_bench_wide"
WIDE_TEXT = 20_000
WIDE_SHARE = 20
"""Of the rows of `TABLE`, every so many has one in `WIDE`, with 20 kB: 1 GB for a million."""
CONNECTOR, BARE = "connector", "bare"


def measure(options: Options) -> Report:
    figures = Rounds()
    with _databases(options) as urls:
        for _ in options.rounds(figures):
            for kind, url in urls.items():
                for how in (CONNECTOR, BARE):
                    _read(figures, f"{kind}, {how}", how=how, url=url, table=TABLE, rows=options.rows)
                _read(
                    figures, f"{kind}, 20 kB rows", how=CONNECTOR, url=url, table=WIDE, rows=options.rows // WIDE_SHARE
                )
        return _report(options, figures, list(urls))


def _read(figures: Rounds, name: str, *, how: str, url: str, table: str, rows: int) -> None:
    # Of two times the first is left out: it starts polars' threads and grows its memory.
    cost = run(python("bench.limits.database_rows", how, url, table, "2"))
    response = json.loads(cost.output)
    if response["rows"] != rows:
        raise Wrong(f"{name}: {response['rows']} rows were read of {rows}")
    figures.add(name, statistics.median(response["seconds"][1:]))
    figures.add(f"{name} cpu", statistics.median(response["cpu_seconds"][1:]))
    figures.add(f"{name} peak", cost.peak_mib)


@contextmanager
def _databases(options: Options) -> Iterator[Mapping[str, str]]:
    """The URLs of the databases with both tables, by kind."""
    file = options.folder / "bench.db"
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {options.rows})"
    with sqlite3.connect(file) as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} AS {numbers} SELECT printf('P%07d', i) AS part, i % 50 AS rev, i * 0.1 AS x,"
            " printf('%.2f', i * 0.37) AS mass, datetime(1767225600 + i, 'unixepoch') AS at,"
            " CASE WHEN i % 3 THEN 'unit ' || i END AS unit FROM n"
        )
        connection.execute(
            f"CREATE TABLE {WIDE} AS {numbers} SELECT i, hex(zeroblob({WIDE_TEXT // 2})) AS v FROM n"
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
                f"CREATE UNLOGGED TABLE {TABLE} AS SELECT 'P' || lpad(i::text, 7, '0') AS part, i % 50 AS rev,"
                " i * 0.1::float8 AS x, round((i * 0.37)::numeric, 2) AS mass,"
                " timestamptz '2026-01-01' + i * interval '1 s' AS at,"
                f" CASE WHEN i % 3 <> 0 THEN 'unit ' || i END AS unit FROM generate_series(1, {options.rows}) i".encode()
            )
            server.execute(
                f"CREATE UNLOGGED TABLE {WIDE} AS SELECT i, repeat('0', {WIDE_TEXT}) AS v"
                f" FROM generate_series(1, {options.rows // WIDE_SHARE}) i".encode()
            )
            yield {**urls, "PostgreSQL": postgres}
        finally:
            server.execute(f"DROP TABLE IF EXISTS {TABLE}, {WIDE}".encode())


def _report(options: Options, figures: Rounds, kinds: list[str]) -> Report:
    names = [f"{kind}, {what}" for kind in kinds for what in (CONNECTOR, BARE, "20 kB rows")]
    around = options.surroundings(figures)
    return Report(
        name="database",
        title=f"database: {options.rows:,} rows of six columns, read whole".replace(",", " "),
        header=("", "seconds", "its CPU", "peak MiB"),
        lines=[
            (
                name,
                figures.spread(name, seconds),
                figures.spread(f"{name} cpu", seconds),
                figures.spread(f"{name} peak", whole),
            )
            for name in names
        ],
        ratios=[
            pair
            for kind in kinds
            for pair in (
                (
                    f"{kind}: rate over the bare cursor",
                    figures.ratio(f"{kind}, {BARE}", f"{kind}, {CONNECTOR}"),
                    "0.8 or more" if kind == "PostgreSQL" else "",
                ),
                (
                    f"{kind}: bare CPU over the connector's",
                    figures.ratio(f"{kind}, {BARE} cpu", f"{kind}, {CONNECTOR} cpu"),
                    "",
                ),
            )
        ],
        notes=[
            surroundings_note(around),
            "Bare: a server-side cursor of text columns, 50 000 rows at a time into polars.",
            "The connector copies SQLite's file first, which holds both tables. Bare, its owner waits for the whole reading.",
        ],
        summary=around | {"seconds": {name: round(figures.median(name), 4) for name in names}},
    )
