"""A database with a table ``p`` that tests change, and readers of its changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.database.changes import ChangeReader, ChangeSource
from connectors.database.families import create_database
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from connectors.database.statement import source as from_clause
from tests.support.changing_table import Client


@dataclass(kw_only=True)
class DatabaseScene:
    """A database. ``clock`` is its expression of the time, ``view`` the name of a view of ``p``."""

    kind: str
    url: str
    clock: str
    client: Callable[[], Client]
    base: Path
    reports: list[str] = field(default_factory=list)

    def do(self, *statements: str) -> None:
        client = self.client()
        for statement in statements:
            client.do(statement)
        client.close()

    def database(self, **options: Any) -> Database:
        settings = DatabaseOptions.model_validate({"url": self.url, "table": "p", "batch_rows": 50} | options)
        return create_database(settings, self.base)

    def reader(
        self, name: str = "p", *, now: Callable[[], float] = lambda: 0.0, choose: Any = None, **more: Any
    ) -> ChangeReader:
        database = self.database()
        settings: dict[str, Any] = {
            "source": from_clause(database.dialect, table=name, query=None),
            "slack_seconds": 0.5,
        }
        settings |= {"table": database.dialect.quote(name)} | more
        source = ChangeSource(**settings)
        return ChangeReader(
            database.open,
            database.dialect,
            source,
            identity=self.url,
            sweep_seconds=3600,
            columns=lambda session: session.columns(source.source),
            now=now,
            report=self.reports.append,
            path=self.base / "p.db" if self.kind == "sqlite" else None,
            **({"choose": choose} if choose else {}),
        )

    def rows(self) -> dict[str, tuple[str | None, ...]]:
        database = self.database()
        with database.open() as session:
            columns = session.columns("p")
            frames = [
                frame.records for frame in session.frames(columns, from_clause(database.dialect, table="p", query=None))
            ]
        return {str(row[0]): row for frame in frames for row in frame.rows()}
