"""The upserts of the service by bare SQLite, with the service's tables, indexes and pragmas.

``python -m bench.limits.sqlite_service FILE KIND SEED COUNT`` prints the seconds. KIND is ``single`` (one commit for each entry)
or the number of entries in a commit. Each batch is sorted by key, as in the service. The keys are those of `bench.load` with the
same seed.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

from bench.load import keys_of, value_of
from workspaced.storage.sqlite_store import open_database

_UPSERT = """
INSERT INTO data_sink_entry (sink, key, value, data_type, id, id_supplied, version, created_at, updated_at,
                             created_by, updated_by)
VALUES (1, ?, ?, 'scalar', ?, 0, 1, 1795000000000, 1795000000000, 'bench', 'bench')
ON CONFLICT (sink, key) DO UPDATE SET value = excluded.value, version = version + 1, updated_at = excluded.updated_at
"""


def main(file: Path, kind: str, seed: int, count: int) -> None:
    batch = 1 if kind == "single" else int(kind)
    keys = keys_of(seed, count)
    # The ids are as long as the service's ids. As in the service, no index contains ids.
    rows = [(key, value_of(key), f"00000000-0000-4000-8000-{number:012x}") for number, key in enumerate(keys)]
    with open_database(file) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")  # the database has no sink for the rows
        started = time.monotonic()
        for start in range(0, count, batch):
            part = sorted(rows[start : start + batch])
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_UPSERT, part)
            connection.execute("COMMIT")
        print(json.dumps({"seconds": time.monotonic() - started, "entries": _held(connection)}))


def _held(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM data_sink_entry").fetchone()[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
