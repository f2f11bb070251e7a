"""Another program that uses the database of a service, SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from ingestd.process.postgres_address import PostgresAddress
from workspaced.storage.address import Address


class DatabaseClient:
    """Executes SQL that both databases understand. Each statement is durable when the call returns."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement; return its rows, or an empty list."""
        with self._connected() as connection:
            cursor = connection.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def locked_sinks(self) -> AbstractContextManager[None]:
        """Lock all sinks: no other program can change a sink until the block ends."""
        return self.uncommitted("UPDATE data_sink SET version = version")

    @contextmanager
    def uncommitted(self, statement: str) -> Iterator[None]:
        """Run a statement in a transaction, which locks the changed rows. Roll it back when the block ends."""
        with self._connected() as connection:
            connection.execute("BEGIN" if isinstance(self._address, PostgresAddress) else "BEGIN IMMEDIATE")
            connection.execute(statement)
            yield
            connection.execute("ROLLBACK")

    @contextmanager
    def older_schema(self) -> Iterator[None]:
        """Make the database look as if it had an older schema, until the block ends."""
        steps = self.execute("DELETE FROM schema_step RETURNING number, oldest_program, at")
        yield
        for step in steps:
            self.execute(f"INSERT INTO schema_step (number, oldest_program, at) VALUES {step}")

    def dump(self) -> str:
        """Return all stored data as text."""
        with self._connected() as connection:
            if isinstance(connection, sqlite3.Connection):
                return "\n".join(connection.iterdump())
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = [connection.execute(f"SELECT t::text FROM {table} t".encode()).fetchall() for (table,) in tables]
        return "\n".join(str(row[0]) for part in rows for row in part)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        connection: Any
        if isinstance(self._address, PostgresAddress):
            connection = psycopg.connect(**dict(self._address.parameters), autocommit=True)  # type: ignore[arg-type]
        else:
            connection = sqlite3.connect(self._address, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()
