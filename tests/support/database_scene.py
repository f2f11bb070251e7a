"""A database with a table ``p`` that tests change, and readers of its changes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.database.changes import ChangeReader
from connectors.database.families import create_database
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from ingestd.sdk import SourceContext
from tests.support.changing_table import Client, SqlClient, SqliteClient
from tests.support.postgres_server import PostgresServer


@dataclass(kw_only=True)
class DatabaseScene:
    """A database for tests. ``clock``: its expression of the current time. ``zone``: the time zone of ``at``, if that has none.

    ``restart`` stops and starts the server; None if that is not possible.
    """

    kind: str
    url: str
    clock: str
    client: Callable[[], Client]
    base: Path
    zone: str = ""
    restart: Callable[[], None] | None = None
    reports: list[str] = field(default_factory=list)
    _readers: list[ChangeReader] = field(default_factory=list)

    def close(self) -> None:
        """Close all readers that `reader` returned."""
        for reader in self._readers:
            reader.close()

    def do(self, *statements: str) -> None:
        client = self.client()
        for statement in statements:
            client.do(statement)
        client.close()

    def create_table(self) -> DatabaseScene:
        """Create the empty table ``p``, and the view ``w`` of this table."""
        time = {"postgresql": "timestamptz", "mariadb": "datetime(6)"}[self.kind]
        self.do(
            "DROP VIEW IF EXISTS w",
            "DROP TABLE IF EXISTS p CASCADE",
            f"CREATE TABLE p (id int PRIMARY KEY, v text, at {time})",
            "CREATE VIEW w AS SELECT * FROM p",
        )
        return self

    def skewed(self, seconds: float) -> str:
        """Return an SQL expression: the time of a clock ``seconds`` ahead of the server's, in the type of the column ``at``."""
        if self.kind == "sqlite":
            return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+} seconds')"
        if self.kind == "postgresql":
            moment = f"(now() + interval '{seconds} s')"
            return f"({moment} AT TIME ZONE '{self.zone}')" if self.zone else moment
        moment = f"(UTC_TIMESTAMP(6) + INTERVAL {round(seconds * 1_000_000)} MICROSECOND)"
        return f"CONVERT_TZ({moment}, '+00:00', '{self.zone or 'SYSTEM'}')"

    def database(self, **options: Any) -> Database:
        named = {} if "query" in options else {"table": "p"}
        settings = DatabaseOptions.model_validate({"url": self.url, "batch_rows": 50} | named | options)
        return create_database(settings, self.base)

    def reader(self, *, now: Callable[[], float] = lambda: 0.0, choose: Any = None, **options: Any) -> ChangeReader:
        defaults = {"key": "id", "mode": "changes", "slack_seconds": 0.5}
        database = self.database(**defaults | options)
        context = SourceContext(
            pipeline="test", base=self.base, now=now, log=self.reports.append, cache_folder=self.base / "cache"
        )
        self._readers.append(ChangeReader(context, database.dialect, database.open, choose))
        return self._readers[-1]

    def rows(self) -> dict[str, tuple[str | None, ...]]:
        database = self.database()
        with database.open() as session:
            frames = [frame.records for frame in session.frames(session.columns("p"), database.dialect.source)]
        return {str(row[0]): row for frame in frames for row in frame.rows()}


def postgresql_scene(server: PostgresServer, base: Path) -> DatabaseScene:
    """Return a scene of a server, without the table ``p``."""
    return DatabaseScene(
        kind="postgresql",
        url=server.url,
        clock="now()",
        client=lambda: SqlClient("postgresql", server.connect),
        base=base,
        restart=server.crash,
    )


def sqlite_scene(base: Path) -> DatabaseScene:
    """Return a scene of a new file with an empty table ``p``."""
    path, lock = base / "p.db", threading.Lock()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT, at TEXT)")
    connection.close()
    return DatabaseScene(
        kind="sqlite",
        url="sqlite:///p.db",
        clock="strftime('%Y-%m-%d %H:%M:%f')",
        client=lambda: SqliteClient(str(path), lock),
        base=base,
    )
