"""A daemon follows a table of PostgreSQL by a trigger and a slot as `ingestd database sql` prints them, also through a kill."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer
from tests.support.postgres_server import PostgresServer, postgresql_server


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    with postgresql_server("-c wal_level=logical") as server:
        yield server


def do(database: PostgresServer, *statements: str) -> None:
    with database.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def test_changes_reach_the_service_between_two_runs_of_the_schedule(
    tmp_path: Path, server: DocumentServer, database: PostgresServer
) -> None:
    do(database, "CREATE TABLE t (n int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    source = {
        "connector": "database", "url": database.url.replace("postgres@", "reader:s3cret@"), "table": "public.t", "key": "n",
        "mode": "changes", "deletes": "remove", "notify": "t_changed", "slot": "t_slot", "publication": "t_pub",
    }  # fmt: skip
    config = write_configuration(tmp_path, server.url, source, schedule="1h")
    setup = here(tmp_path, "database", "sql", "-c", str(config), "p0")
    assert setup.returncode == 0, setup.stderr
    subprocess.run(
        ["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", database.url],
        input=setup.stdout, text=True, check=True, capture_output=True,
    )  # fmt: skip
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_acknowledged")
        assert sorted(server.values("Sink 0")) == ["0.1", "0.2", "0.3"]
        do(database, "INSERT INTO t VALUES (4)")
        daemon.wait_for("partition_read", created=1, removed=0)
        do(database, "UPDATE t SET n = 9 WHERE n = 1")
        daemon.wait_for("partition_read", created=1, removed=1)
        status = here(tmp_path, "status", "-c", str(config)).stdout
        assert "Listens on channel t_changed of postgresql://***@" in status
        assert "Changes are found by the method 'slot'." in status
        assert "s3cret" not in status
        daemon.process.send_signal(signal.SIGKILL)
        daemon.ended()
    do(database, "DELETE FROM t WHERE n = 2")
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_read", removed=1)
        assert daemon.stop() == 0
    assert here(tmp_path, "sync", "-c", str(config)).returncode == 0
    assert sorted(server.values("Sink 0")) == ["0.3", "0.4", "0.9"]
