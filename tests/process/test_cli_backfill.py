"""`ingestd backfill`: a daemon maps a whole table again, also after kill -9, while new rows arrive; it can be cancelled."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer
from tests.support.golden_texts import check_command_output
from tests.support.postgres_server import PostgresServer, postgresql_server

ROWS = 2000


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    with postgresql_server() as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (n int PRIMARY KEY)")
        connection.execute(f"INSERT INTO t SELECT generate_series(1, {ROWS})")
        yield server


def follow(folder: Path, server: DocumentServer, database: PostgresServer) -> Path:
    """Write a configuration, read the table, and have every desired value differ from the table."""
    source = {
        "connector": "database",
        "url": database.url,
        "table": "t",
        "key": "n",
        "mode": "changes",
        "batch_rows": 20,
    }
    config = write_configuration(folder, server.url, source, schedule="1h")
    assert here(folder, "sync").returncode == 0
    with closing(sqlite3.connect(folder / "var" / "ingestd.db")) as state, state:
        state.execute("UPDATE entry SET value = 'lost'")
    return config


def position(folder: Path) -> dict[str, Any] | None:
    shown = here(folder, "cursor", "show", "p0", "--json")
    found: dict[str, Any] = json.loads(shown.stdout)[0]["cursor"]
    return found.get("backfill")


def lost(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "var" / "ingestd.db")) as state:
        count: int = state.execute("SELECT count(*) FROM entry WHERE value = 'lost'").fetchone()[0]
        return count


def test_a_killed_daemon_continues_and_changes_arrive_meanwhile(
    tmp_path: Path, server: DocumentServer, database: PostgresServer
) -> None:
    config = follow(tmp_path, server, database)
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        begun = here(tmp_path, "backfill", "p0")
        assert begun.returncode == 0, begun.stderr
        check_command_output("backfill", begun.stdout)
        daemon.wait_for("cursor_moved", action="backfill")
        daemon.wait_for("partition_read", updated=20, nth=3)
        with database.connect() as connection:
            connection.execute("INSERT INTO t VALUES (-1)")
        daemon.wait_for("partition_read", created=1)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.ended()
    stored = position(tmp_path)
    assert stored is not None
    assert 60 <= stored["rows"] < ROWS
    assert ROWS - 20 >= lost(tmp_path) > 0
    assert here(tmp_path, "sync").returncode == 0
    assert position(tmp_path) is None
    assert lost(tmp_path) == 0
    assert sorted(server.values("Sink 0")) == sorted(f"0.{n}" for n in [-1, *range(1, ROWS + 1)])


def test_a_backfill_is_cancelled(tmp_path: Path, server: DocumentServer, database: PostgresServer) -> None:
    follow(tmp_path, server, database)
    assert here(tmp_path, "backfill", "p0").returncode == 0
    assert position(tmp_path) == {"keys": ["n"], "after": None, "rows": 0, "of": None}
    cancelled = here(tmp_path, "backfill", "p0", "--cancel")
    assert cancelled.returncode == 0, cancelled.stderr
    check_command_output("backfill-cancel", cancelled.stdout)
    again = here(tmp_path, "backfill", "p0", "--cancel")
    assert (again.returncode, again.stderr) == (75, "No backfill runs.\n")
    assert here(tmp_path, "sync").returncode == 0
    assert lost(tmp_path) == ROWS


def test_a_pipeline_without_changes_has_no_backfill(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    assert here(tmp_path, "sync").returncode == 0
    refused = here(tmp_path, "backfill", "p0")
    assert refused.returncode == 75
    assert "ingestd cursor reset p0 --all" in refused.stderr
    assert here(tmp_path, "backfill", "p1").returncode == 2
