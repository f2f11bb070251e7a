"""Insertion of a file's entries into SQLite, in durable transactions of 50 000 sorted entries (WAL, synchronous=FULL).

Only the insertions are measured. ``python -m bench.limits.sqlite_insert CSV FILE`` prints their seconds.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

from bench.sample import read_entries

BATCH = 50_000


def main(csv: Path, database: str) -> None:
    entries = read_entries(csv)
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE entry (key TEXT PRIMARY KEY, value TEXT, data_type TEXT) WITHOUT ROWID")
    seconds = 0.0
    for start in range(0, entries.height, BATCH):
        rows = entries[start : start + BATCH].sort("key").rows()
        started = time.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO entry VALUES (?, ?, 'scalar')", rows)
        connection.execute("COMMIT")
        seconds += time.monotonic() - started
    connection.close()
    print(json.dumps({"seconds": seconds, "rows": entries.height}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
