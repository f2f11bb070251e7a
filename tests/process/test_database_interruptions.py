"""The real daemon reads changing tables: it is killed, and the servers end, freeze and restart in the middle of its readings.

``INGESTD_KILL_ROUNDS`` is the number of kills.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_table import SqlClient
from tests.support.daemon_process import Daemon, environment, here, running_daemon
from tests.support.database_scene import DatabaseScene, postgresql_scene, sqlite_scene
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import mariadb_connection, mariadb_server
from tests.support.table_writers import Writers
from tests.support.workspaced_process import WorkspaceService, new_key

ROUNDS = int(os.environ.get("INGESTD_KILL_ROUNDS", "3"))
CONFIGURATION = ("-c", "ingestd.yaml")
DEADLINE_SECONDS = 60.0
WAITING = {
    "postgresql": "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'p'::regclass",
    "mariadb": "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'",
}


class DatabasePipelines:
    """Pipelines that follow the changes of table ``p``; the sink has the name of the pipeline."""

    def __init__(
        self, folder: Path, service: WorkspaceService, key: str, scenes: Mapping[str, DatabaseScene], **options: Any
    ) -> None:
        self._http = service.client(key)
        self._http.post("/v1/workspace", json={"label": "Bench"}).raise_for_status()
        self._scenes = scenes
        source = {"connector": "database", "table": "p", "key": "id", "mode": "changes", "deletes": "remove"}
        pipelines = [
            {
                "name": name,
                "source": source
                | {"url": scene.url, **({"cursor": "at"} if scene.kind == "mariadb" else {})}
                | options,
                "entries": {"key": "{id}", "value": "{v}"},
                "sink": {"workspace": "Bench", "label": name},
                "schedule": {"every": "1s"},
            }
            for name, scene in scenes.items()
        ]
        settings = {"service": {"url": service.url, "api_key": key}, "state": "ingestd.db", "pipelines": pipelines}
        (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def entries(self) -> dict[str, dict[str, str]]:
        """Return key and value of each entry, by sink."""
        (workspace,) = self._http.get("/v1/workspace").raise_for_status().json()
        sinks = self._http.get(f"/v1/workspace/{workspace['id']}/data-sink").raise_for_status().json()
        return {sink["label"]: {entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks}

    def rows(self) -> dict[str, dict[str, str]]:
        """Return key and value of each row, by pipeline."""
        return {name: {key: str(row[1]) for key, row in scene.rows().items()} for name, scene in self._scenes.items()}

    def wait_until_equal(self) -> None:
        """Wait until the sinks have the rows of the tables."""
        until, rows = time.monotonic() + DEADLINE_SECONDS, self.rows()
        while (held := self.entries()) != rows:
            if time.monotonic() > until:
                raise AssertionError(f"the sinks have {held}, not {rows}")
            time.sleep(0.05)  # the service does not signal what arrives

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgresql_server("-c max_prepared_transactions=20", "-c deadlock_timeout=50ms") as server:
        yield server


@pytest.fixture
def postgresql(server: PostgresServer, tmp_path: Path) -> DatabaseScene:
    return postgresql_scene(server, tmp_path).create_table()


@pytest.fixture
def mariadb(tmp_path: Path) -> Iterator[DatabaseScene]:
    with mariadb_server() as url:
        yield DatabaseScene(
            kind="mariadb",
            url=url,
            clock="NOW(6)",
            client=lambda: SqlClient("mariadb", lambda: mariadb_connection(url)),
            base=tmp_path,
        ).create_table()


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
    postgresql: DatabaseScene, pipelines_of: Callable[..., DatabasePipelines], tmp_path: Path
) -> None:
    sqlite = sqlite_scene(tmp_path)
    pipelines = pipelines_of(postgresql, sqlite, batch_rows=50, sweep_seconds=0.5)
    rng = random.Random(1)
    writers = [Writers(scene, seed=seed) for seed, scene in enumerate((postgresql, sqlite))]
    for writer in writers:
        writer.start()
    try:
        for number in range(ROUNDS):
            daemon = Daemon(["ingestd", "run", *CONFIGURATION], env=environment(tmp_path), cwd=tmp_path)
            if number % 3:  # the other daemons end while they start
                daemon.wait_for("daemon_ready")
            threading.Event().wait(rng.uniform(0.0, 1.5))
            assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
            assert daemon.process.stdout is not None
            daemon.process.stdout.close()
    finally:
        for writer in writers:
            writer.stop()
    done = here(tmp_path, "sync", *CONFIGURATION)
    assert done.returncode == 0, done.stdout + done.stderr
    assert pipelines.entries() == pipelines.rows()
    assert all(pipelines.rows().values())


def waiting_process(scene: DatabaseScene, client: SqlClient) -> int:
    """Return the server process of the daemon's reading, as soon as it waits for the lock of ``client``."""
    until = time.monotonic() + 30
    while not (found := client.fetch(WAITING[scene.kind])):
        assert time.monotonic() < until, "no reading waits for the lock"
        time.sleep(0.01)  # the server does not signal that a process waits
    return int(found[0][0])


@pytest.mark.parametrize(
    ("kind", "interruption", "sentence"),
    [
        ("postgresql", "frozen", "sent nothing for longer than 3 seconds (statement_timeout_seconds)"),
        ("postgresql", "restarted", "can't be reached"),
        ("mariadb", "killed", "can't be reached"),
    ],
)
def test_a_reading_that_its_server_interrupts_is_tried_again_and_loses_nothing(  # noqa: PLR0917 - its parameters
    kind: str,
    interruption: str,
    sentence: str,
    pipelines_of: Callable[..., DatabasePipelines],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    scene: DatabaseScene = request.getfixturevalue(kind)
    pipelines = pipelines_of(scene, statement_timeout_seconds=3)
    scene.do(*(f"INSERT INTO p VALUES ({row}, 'before', {scene.clock})" for row in range(1, 201)))
    owner = scene.client()
    assert isinstance(owner, SqlClient)
    with running_daemon(tmp_path, "run", *CONFIGURATION) as (daemon, _):
        pipelines.wait_until_equal()
        for statement in ("LOCK TABLES p WRITE",) if kind == "mariadb" else ("BEGIN", "LOCK TABLE p"):
            owner.do(statement)
        owner.do(f"UPDATE p SET v = 'while it waited', at = {scene.clock} WHERE id <= 100")
        process = waiting_process(scene, owner)
        match interruption:
            case "killed":
                owner.do(f"KILL {process}")
                owner.do("UNLOCK TABLES")
            case "frozen":
                os.kill(process, signal.SIGSTOP)
                owner.do("COMMIT")  # so that the silence is not that of the lock
            case "restarted":
                assert scene.restart is not None
                scene.restart()  # the update is lost
        away = daemon.wait_for("source_away")
        assert sentence in away["sentence"]
        if interruption == "frozen":
            os.kill(process, signal.SIGCONT)
        owner.recover()
        owner.do(f"UPDATE p SET v = 'after', at = {scene.clock} WHERE id > 150")
        pipelines.wait_until_equal()
        daemon.wait_for("source_back")
        assert daemon.stop() == 0
    owner.close()
