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
    """A database. ``clock`` is its expression of the time. ``zone``: the time zone of the column ``at`` if that has none.

    ``restart`` stops the server and starts it; None if that is not possible.
    """

    kind: str
    url: str
    clock: str
    client: Callable[[], Client]
    base: Path
    zone: str = ""
    restart: Callable[[], None] | None = None
    reports: list[str] = field(default_factory=list)

    def do(self, *statements: str) -> None:
        client = self.client()
        for statement in statements:
            client.do(statement)
        client.close()

    def skewed(self, seconds: float) -> str:
        """Return the time by a clock that is ``seconds`` ahead of the server's, in the type of the column ``at``."""
        if self.kind == "sqlite":
            return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+} seconds')"
        if self.kind == "postgresql":
            moment = f"(now() + interval '{seconds} s')"
            return f"({moment} AT TIME ZONE '{self.zone}')" if self.zone else moment
        moment = f"(UTC_TIMESTAMP(6) + INTERVAL {round(seconds * 1_000_000)} MICROSECOND)"
        return f"CONVERT_TZ({moment}, '+00:00', '{self.zone or 'SYSTEM'}')"

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
            keys=("id",),
            sweep_seconds=3600,
            columns=lambda session: session.columns(source.source),
            now=now,
            report=self.reports.append,
            path=self.base / "p.db" if self.kind == "sqlite" and choose is None else None,
            index_path=lambda: self.base / f"{name}.rows.db",
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
