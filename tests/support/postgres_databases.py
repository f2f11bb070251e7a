"""Databases of a real PostgreSQL server, created for tests and dropped afterwards."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

from ingestd.process.postgres_address import postgres_address
from tests.support.postgres_server import server_of_tests
from workspaced.storage import postgres_schema


class Databases:
    """Creates empty and migrated databases. Their default collation is that of a language."""

    def __init__(self, server: psycopg.Connection[tuple[object, ...]]) -> None:
        self._server = server
        self._prefix = f"workspaced_test_{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)
        self._free: list[str] = []

    @contextmanager
    def empty(self) -> Iterator[str]:
        """Create an empty database until the context ends; yield its URL."""
        name = self._create()
        try:
            yield url_of(name)
        finally:
            self._drop(name)

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """Yield the URL of a database with the newest schema. It is emptied and used again, because emptying is fast."""
        name = self._free.pop() if self._free else ""
        if not name:
            name = self._create()
            postgres_schema.migrate(postgres_address(url_of(name)))
        try:
            yield url_of(name)
        finally:
            self._empty(name)
            self._free.append(name)

    def close(self) -> None:
        while self._free:
            self._drop(self._free.pop())

    def _create(self) -> str:
        name = f"{self._prefix}_{next(self._numbers)}"
        # The collation of a language sorts "a" before "B" and ignores hyphens, which reveals a missing COLLATE "C".
        language = ""
        if self._server.info.server_version >= 150_000:
            language = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C' ENCODING 'UTF8'"
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE template0 {language}".encode())
        return name

    def _empty(self, name: str) -> None:
        self._server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        with psycopg.connect(url_of(name), options="-c session_replication_role=replica") as connection:
            connection.execute(_DELETE_ALL)

    def _drop(self, name: str) -> None:
        self._server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


_DELETE_ALL = """
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables
                WHERE schemaname = 'public' AND tablename NOT IN ('schema_step', 'data_sink_entry_numbers') LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    PERFORM setval('entry_number', 1, false), setval('event_number', 1, false);
END
$$
"""


def url_of(name: str) -> str:
    """Return the server's URL with another database."""
    return urlunsplit(urlsplit(server_of_tests())._replace(path=f"/{name}"))


@contextmanager
def databases() -> Iterator[Databases]:
    """Yield databases of the tests' server. Skip the test if there is no server."""
    with psycopg.connect(server_of_tests(), autocommit=True) as server:
        made = Databases(server)
        try:
            yield made
        finally:
            made.close()
