"""The PostgreSQL server of INGESTD_BENCH_POSTGRES_URL."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.child import children_of, cpu_seconds

POSTGRES_URL = "INGESTD_BENCH_POSTGRES_URL"


@contextlib.contextmanager
def empty_database() -> Iterator[str]:
    """Create an empty database, and drop it when the context ends; yield its URL."""
    server = os.environ[POSTGRES_URL]
    name = f"bench_{os.getpid()}_{random.getrandbits(32):08x}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def server_cpu_seconds() -> float:
    """Return the processor time of all processes of the server so far, in seconds. The server must run on this machine."""
    with psycopg.connect(os.environ[POSTGRES_URL]) as connection:
        status = Path(f"/proc/{connection.info.backend_pid}/status").read_text()
        postmaster = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
        return cpu_seconds(postmaster, with_ended_children=True) + sum(map(cpu_seconds, children_of(postmaster)))


def writing_transactions() -> int:
    """Return the number of transactions so far that have written, in all databases of the server."""
    with psycopg.connect(os.environ[POSTGRES_URL]) as connection:
        ((number,),) = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchall()
        return int(number)
