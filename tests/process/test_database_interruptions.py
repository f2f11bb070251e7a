"""The real daemon reads changing tables: it is killed, and the servers end, freeze and restart in the middle of its readings.

``INGESTD_KILL_ROUNDS`` is the number of kills.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_table import SqlClient, SqliteClient
from tests.support.daemon_process import Daemon, environment, ingestd, running_daemon
from tests.support.database_pipelines import DatabasePipelines
from tests.support.database_scene import DatabaseScene
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import MariadbServer, mariadb_connection, restartable_mariadb_server
from tests.support.table_writers import Writers
from tests.support.workspaced_process import WorkspaceService, new_key

ROUNDS = int(os.environ.get("INGESTD_KILL_ROUNDS", "6"))
CONFIGURATION = ("-c", "ingestd.yaml")
SENTENCES = {
    "terminated": "terminating connection due to administrator command",
    "frozen": "sent nothing for longer than 3 seconds (statement_timeout_seconds)",
    "restarted": "can't be reached",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgresql_server("-c max_prepared_transactions=20", "-c deadlock_timeout=50ms") as server:
        yield server


@pytest.fixture
def postgresql(server: PostgresServer, tmp_path: Path) -> DatabaseScene:
    scene = DatabaseScene(
        kind="postgresql",
        url=server.url,
        clock="now()",
        client=lambda: SqlClient("postgresql", server.connect),
        base=tmp_path,
    )
    scene.do("DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v text, at timestamptz)")
    return scene


@pytest.fixture
def sqlite(tmp_path: Path) -> DatabaseScene:
    path, lock = tmp_path / "p.db", threading.Lock()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT, at TEXT)")
    connection.close()
    return DatabaseScene(
        kind="sqlite",
        url="sqlite:///p.db",
        clock="strftime('%Y-%m-%d %H:%M:%f')",
        client=lambda: SqliteClient(str(path), lock),
        base=tmp_path,
    )


@pytest.fixture
def pipelines_of(tmp_path: Path) -> Iterator[Callable[..., DatabasePipelines]]:
    key = new_key(tmp_path / "service")
    made: list[DatabasePipelines] = []
    with WorkspaceService(tmp_path / "service") as service:

        def make(*scenes: DatabaseScene, **options: Any) -> DatabasePipelines:
            made.append(DatabasePipelines(tmp_path, service, key, {scene.kind: scene for scene in scenes}, **options))
            return made[-1]

        yield make
        for pipelines in made:
            pipelines.close()


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_kills_at_any_moment_lose_no_change_and_leave_no_stale_entry(
    postgresql: DatabaseScene, sqlite: DatabaseScene, pipelines_of: Callable[..., DatabasePipelines], tmp_path: Path
) -> None:
    pipelines = pipelines_of(postgresql, sqlite, batch_rows=50, sweep_seconds=0.5)
    rng = random.Random(1)
    writers = [Writers(scene, seed=seed) for seed, scene in enumerate((postgresql, sqlite))]
    for writer in writers:
        writer.start()
    try:
        for number in range(ROUNDS):
            daemon = Daemon(["ingestd", "run", *CONFIGURATION], env=environment(tmp_path), cwd=tmp_path)
            if number % 3:  # the others end while they start
                daemon.wait_for("daemon_ready")
            threading.Event().wait(rng.uniform(0.0, 1.5))
            assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
            assert daemon.process.stdout is not None
            daemon.process.stdout.close()
    finally:
        for writer in writers:
            writer.stop()
    done = ingestd(tmp_path, "sync", *CONFIGURATION)
    assert done.returncode == 0, done.stdout + done.stderr
    assert pipelines.entries() == pipelines.rows()
    assert all(pipelines.rows().values())


def waiting_process(client: SqlClient) -> int:
    """Return the server process of the daemon's reading, as soon as it waits for the lock of ``client``."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = client.fetch("SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'p'::regclass")
        if found:
            return int(found[0][0])
        time.sleep(0.01)  # the server does not signal that a process waits
    raise AssertionError("no reading waits for the lock")


@pytest.mark.parametrize("interruption", SENTENCES)
def test_a_reading_that_its_server_interrupts_is_tried_again_and_loses_nothing(
    interruption: str,
    server: PostgresServer,
    postgresql: DatabaseScene,
    pipelines_of: Callable[..., DatabasePipelines],
    tmp_path: Path,
) -> None:
    pipelines = pipelines_of(postgresql, statement_timeout_seconds=3)
    postgresql.do("INSERT INTO p SELECT g, 'before', now() FROM generate_series(1, 200) g")
    owner = postgresql.client()
    assert isinstance(owner, SqlClient)
    with running_daemon(tmp_path, "run", *CONFIGURATION) as (daemon, _):
        pipelines.wait_until_equal()
        owner.do("BEGIN")
        owner.do("LOCK TABLE p IN ACCESS EXCLUSIVE MODE")
        owner.do("UPDATE p SET v = 'while it waited', at = now() WHERE id <= 100")
        process = waiting_process(owner)
        match interruption:
            case "terminated":
                owner.do(f"SELECT pg_terminate_backend({process})")
                owner.do("COMMIT")
            case "frozen":
                os.kill(process, signal.SIGSTOP)
                owner.do("COMMIT")  # so that the silence is not that of the lock
            case "restarted":
                server.crash()  # the update is lost
        away = daemon.wait_for("source_away")
        assert SENTENCES[interruption] in away["sentence"]
        if interruption == "frozen":
            os.kill(process, signal.SIGCONT)
        owner.recover()
        owner.do("UPDATE p SET v = 'after', at = now() WHERE id > 150")
        pipelines.wait_until_equal()
        daemon.wait_for("source_back")
        assert daemon.stop() == 0
    owner.close()


@pytest.fixture(scope="module")
def mariadb_of_tests() -> Iterator[MariadbServer]:
    with restartable_mariadb_server() as server:
        yield server


@pytest.mark.parametrize("interruption", ["killed", "frozen", "restarted"])
def test_a_reading_that_mariadb_interrupts_is_tried_again_and_loses_nothing(
    interruption: str,
    mariadb_of_tests: MariadbServer,
    pipelines_of: Callable[..., DatabasePipelines],
    tmp_path: Path,
) -> None:
    url = mariadb_of_tests.url
    scene = DatabaseScene(
        kind="mariadb",
        url=url,
        clock="NOW(6)",
        client=lambda: SqlClient("mariadb", lambda: mariadb_connection(url)),
        base=tmp_path,
    )
    scene.do("DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v text, at datetime(6))")
    scene.do("INSERT INTO p SELECT seq, 'before', NOW(6) FROM seq_1_to_200")
    pipelines = pipelines_of(scene, statement_timeout_seconds=3, connect_timeout_seconds=3)
    owner = scene.client()
    assert isinstance(owner, SqlClient)
    with running_daemon(tmp_path, "run", *CONFIGURATION) as (daemon, _):
        pipelines.wait_until_equal()
        owner.do("LOCK TABLES p WRITE")
        owner.do("UPDATE p SET v = 'while it waited', at = NOW(6) WHERE id <= 100")
        waiting = "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'"
        until = time.monotonic() + 30
        while not (found := owner.fetch(waiting)):
            assert time.monotonic() < until
            time.sleep(0.01)  # the server does not signal that a statement waits
        match interruption:
            case "killed":
                owner.do(f"KILL {found[0][0]}")
                owner.do("UNLOCK TABLES")
            case "frozen":
                owner.do("UNLOCK TABLES")
                mariadb_of_tests.signal(signal.SIGSTOP)
            case "restarted":
                mariadb_of_tests.restart()
        try:
            sentence = daemon.wait_for("source_away")["sentence"]
        finally:
            mariadb_of_tests.signal(signal.SIGCONT)
        assert re.search(r"can't be reached|sent nothing for longer than 3 seconds", sentence), sentence
        owner.recover()
        owner.do("UPDATE p SET v = 'after', at = NOW(6) WHERE id > 150")
        pipelines.wait_until_equal()
        daemon.wait_for("source_back")
        assert daemon.stop() == 0
    owner.close()
