"""Another program that uses the database of a service, SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from workspaced.storage.address import Address, PostgresAddress


class DatabaseClient:
    """Executes SQL that both databases understand. Each statement is durable when the call returns."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement; return its rows, if it has any."""
        with self._connected() as connection:
            cursor = connection.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def locked_sinks(self) -> AbstractContextManager[None]:
        """Lock the sinks: no other program can change one until the block ends."""
        return self.uncommitted("UPDATE data_sink SET version = version")

    @contextmanager
    def uncommitted(self, statement: str) -> Iterator[None]:
        """Run a statement in a transaction that locks its rows until the block ends and is then rolled back."""
        with self._connected() as connection:
            connection.execute("BEGIN" if isinstance(self._address, PostgresAddress) else "BEGIN IMMEDIATE")
            connection.execute(statement)
            yield
            connection.execute("ROLLBACK")

    @contextmanager
    def older_schema(self) -> Iterator[None]:
        """Make the database claim an older schema until the block ends."""
        if isinstance(self._address, PostgresAddress):
            steps = self.execute("DELETE FROM schema_step RETURNING number")
            yield
            for (number,) in steps:
                self.execute(f"INSERT INTO schema_step VALUES ({number}, now())")
        else:
            ((step,),) = self.execute("PRAGMA user_version")
            self.execute("PRAGMA user_version = 0")
            yield
            self.execute(f"PRAGMA user_version = {step}")

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
