"""Readings of a table: the whole table by the connector, the bare driver or dlt, or its changes by the connector.

``python -m bench.limits.database_rows HOW URL TABLE TIMES`` prints wall and CPU seconds of each reading, without imports, and
the number of rows. HOW: ``connector``; ``bare``, the driver's text cursor into polars; ``dlt``, with its backend pyarrow;
``poll``, the connector's reading of changes of an unchanged table; ``count``, the driver's ``count(*)``.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import psycopg

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Cursor, SourceContext

ROWS_AT_ONCE = 50_000


def read_by_connector(url: str, table: str) -> int:
    options = DatabaseOptions.model_validate({"url": url, "table": table})
    source = DatabaseConnector(options, SourceContext(pipeline="bench", base=Path("/"), now=time.time))
    (partition,) = source.partitions()
    return sum(batch.records.height for batch in source.read(partition, None))


def read_bare(url: str, table: str) -> int:
    if url.startswith("sqlite:"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        return _frames(
            connection.execute(f"SELECT {', '.join(f'CAST({n} AS TEXT)' for n in names)} FROM {table}"), names
        )
    with psycopg.connect(url) as server, server.cursor("bare") as cursor:
        names = [column.name for column in server.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
        cursor.execute(f"SELECT {', '.join(f'{name}::text' for name in names)} FROM {table}".encode())
        return _frames(cursor, names)


def read_by_dlt(url: str, table: str) -> int:
    """Read with dlt. The caller must check that dlt is installed."""
    sql_table = importlib.import_module("dlt.sources.sql_database").sql_table
    address = url.replace("postgresql:", "postgresql+psycopg:")
    resource = sql_table(credentials=address, table=table, backend="pyarrow", chunk_size=ROWS_AT_ONCE)
    return sum(part.num_rows for part in resource)


def poll(url: str, table: str) -> Callable[[], int]:
    """Read all rows once. Return a function that polls the table for changes and returns the number of yielded rows."""
    options = DatabaseOptions.model_validate({"url": url, "table": table, "mode": "changes", "key": "part"})
    source = DatabaseConnector(options, SourceContext(pipeline="bench", base=Path("/"), now=time.time))
    (partition,) = source.partitions()
    cursor: Cursor | None = None
    for batch in source.read(partition, None):
        cursor = batch.cursor
    return lambda: sum(batch.records.height for batch in source.read(partition, cursor))


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as server:
        row = server.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        return int(row[0]) if row is not None else 0


def _frames(cursor: Any, names: Sequence[str]) -> int:
    rows = 0
    schema = dict.fromkeys(names, pl.String)
    while fetched := cursor.fetchmany(ROWS_AT_ONCE):
        rows += pl.DataFrame(fetched, schema=schema, orient="row").height
    return rows


def main(how: str, url: str, table: str, times: int) -> None:
    whole = {"connector": read_by_connector, "bare": read_bare, "dlt": read_by_dlt, "count": count}
    read = poll(url, table) if how == "poll" else partial(whole[how], url, table)
    seconds, cpu_seconds, rows = [], [], 0
    for _ in range(times):
        started, used = time.monotonic(), time.process_time()
        rows = read()
        seconds.append(time.monotonic() - started)
        cpu_seconds.append(time.process_time() - used)
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
