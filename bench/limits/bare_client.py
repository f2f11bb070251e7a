"""A minimal client of the service, with prepared bodies and two connections. It only counts the accepted entries.

Its bodies have the entries in the order in which ingestd sends them (sorted within every 8 MiB of the file). With another
order, a B-tree can be several times as fast. ``python -m bench.limits.bare_client CSV URL PATH``, with the key in
BENCH_API_KEY, prints the seconds from the first request to the last response.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from bench.sample import read_entries

SORTED_BYTES = 8 * 2**20
ITEMS = 5_000
CONNECTIONS = 2


def bodies_of(csv: Path) -> list[bytes]:
    entries = read_entries(csv).with_columns(pl.lit("scalar").alias("dataType"))
    rows = max(ITEMS, entries.height * SORTED_BYTES // csv.stat().st_size)
    made = []
    for start in range(0, entries.height, rows):
        batch = entries[start : start + rows].sort("key")
        made += [batch[at : at + ITEMS].write_json().encode() for at in range(0, batch.height, ITEMS)]
    return made


class _Feed:
    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies: Iterator[bytes] = iter(bodies)
        self._guard = threading.Lock()
        self.accepted = 0

    def send_all(self, url: str, api_key: str, path: str) -> None:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        headers = {
            "x-api-key": api_key,
            "ClientId": "bare",
            "Content-Type": "application/json",
            "Prefer": "return=minimal",
        }
        while True:
            with self._guard:
                body = next(self._bodies, None)
            if body is None:
                break
            connection.request("POST", path, body=body, headers=headers)
            response = connection.getresponse()
            counts = json.loads(response.read())
            with self._guard:
                self.accepted += counts["accepted"]
        connection.close()


def main(csv: Path, url: str, api_key: str, path: str) -> None:
    feed = _Feed(bodies_of(csv))
    threads = [threading.Thread(target=feed.send_all, args=(url, api_key, path)) for _ in range(CONNECTIONS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"seconds": time.monotonic() - started, "accepted": feed.accepted}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], os.environ["BENCH_API_KEY"], sys.argv[3])
