"""The upserts of the service on PostgreSQL by bare psycopg, in the service's schema; see `bench.limits.sqlite_service`.

``python -m bench.limits.postgres_service KIND SEED COUNT``, with the URL of an empty database in BENCH_DATABASE_URL.
"""

from __future__ import annotations

import json
import os
import sys
import time

import psycopg

from bench.load import keys_of, value_of
from ingestd.process.postgres_address import postgres_address
from workspaced.storage import postgres_schema

_UPSERT = """
INSERT INTO data_sink_entry (number, sink, key, value, data_type, id, id_supplied, version, created_at, updated_at,
                             created_by, updated_by)
VALUES (%s, 1, %s, %s, 'scalar', %s, 0, 1, 1795000000000, 1795000000000, 'bench', 'bench')
ON CONFLICT (sink, key) DO UPDATE SET value = excluded.value, version = data_sink_entry.version + 1,
    updated_at = excluded.updated_at
"""


def main(kind: str, seed: int, count: int) -> None:
    url = os.environ["BENCH_DATABASE_URL"]
    batch = 1 if kind == "single" else int(kind)
    postgres_schema.migrate(postgres_address(url))
    rows = [
        (number, key, value_of(key), f"00000000-0000-4000-8000-{number:012x}")
        for number, key in enumerate(keys_of(seed, count), 1)
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        started = time.monotonic()
        for start in range(0, count, batch):
            part = sorted(rows[start : start + batch], key=lambda row: row[1])
            with connection.transaction():
                if batch == 1:
                    cursor.execute(_UPSERT, part[0], prepare=True)
                else:
                    cursor.executemany(_UPSERT, part)
        seconds = time.monotonic() - started
        held = cursor.execute("SELECT count(*) FROM data_sink_entry").fetchone()
    print(json.dumps({"seconds": seconds, "entries": held[0] if held else 0}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
