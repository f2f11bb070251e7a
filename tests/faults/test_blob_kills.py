"""The service is killed at each request to the bucket: during uploads and during the sweep."""

from __future__ import annotations

import contextlib
import itertools
import queue
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.support.bucket_gate import BucketGate, bucket_gate
from tests.support.object_server import ObjectServer, blob_environment
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key
from workspaced.storage.blobs.blobs import GRACE_MS
from workspaced.storage.blobs.bucket import PART_BYTES
from workspaced.storage.blobs.port import IDENTITY

_FILES = "/v1/cloud-storage"
_PREFIX = "killed/files"


class Scene:
    """A service with a bucket behind a gate. ``acknowledged``: the content of each file with a response, by its id."""

    def __init__(self, data: Path, server: ObjectServer, gate: BucketGate, seed: int) -> None:
        self._data = data
        self._server = server
        self._gate = gate
        self._random = random.Random(seed)
        self._key = new_key(data)
        self._workspace = ""
        blobs = blob_environment(gate.endpoint, data.parent, f"s3://bench/{_PREFIX}")
        self._environment = {**blobs, "WORKSPACED_MAINTENANCE_SECONDS": "1"}
        self._started: queue.SimpleQueue[WorkspaceService] = queue.SimpleQueue()
        self.acknowledged: dict[str, bytes] = {}
        self.killed = 0

    def serve(self) -> WorkspaceService:
        if self.killed:  # the leases of the killed process end within seconds
            with closing(self._database()) as database, database:
                database.execute("DELETE FROM job_lease")
        service = WorkspaceService(self._data, environment=self._environment)
        self._started.put(service)
        return service

    def kill_at(self, number: int, *, after: bool, matches: Callable[[str, str], bool]) -> None:
        """Kill the service, which starts next, at the request with this number, before or after the bucket handles it."""
        count = itertools.count(1)
        self._started = queue.SimpleQueue()

        def hook(method: str, path: str) -> tuple[int, bytes] | None:
            if matches(method, path) and next(count) == number:
                self.killed += 1
                self._started.get(timeout=DEADLINE_SECONDS).kill()
                return 503, b""  # a bucket that has not got the request does nothing
            return None

        self._gate.before = (lambda _method, _path: None) if after else hook
        self._gate.after = hook if after else (lambda _method, _path: None)

    def let_all_pass(self) -> None:
        self._gate.before = lambda _method, _path: None
        self._gate.after = lambda _method, _path: None

    def upload(self, service: WorkspaceService, content: bytes) -> None:
        """Upload a file of two objects. The service may be killed meanwhile."""
        with service.client(self._key) as http, contextlib.suppress(httpx.TransportError):
            self._workspace = self._workspace or http.post("/v1/workspace", json={"label": "w"}).json()["id"]
            params = {"workspaceId": self._workspace, "fileName": "a.bin"}
            response = http.post(_FILES, params=params, content=content)
            assert response.status_code == 201, response.text
            self.acknowledged[response.json()["id"]] = content

    def content(self) -> bytes:
        return self._random.randbytes(PART_BYTES + self._random.randrange(1, 100))

    def read_all(self, service: WorkspaceService) -> None:
        """Each file that has a record has its bytes; each acknowledged one has a record."""
        with service.client(self._key) as http:
            listed = http.get(_FILES, params={"workspaceId": self._workspace}).json()
            assert {file["id"] for file in listed} >= self.acknowledged.keys()
            for file in listed:
                response = http.get(f"{_FILES}/download/{file['id']}")
                assert response.status_code == 200, response.text
                assert len(response.content) == file["size"]
                assert response.content == self.acknowledged.get(file["id"], response.content)

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self._data / "workspaced.db", timeout=DEADLINE_SECONDS)

    def pass_half_a_day(self) -> None:
        """Let all rows that nothing refers to be half a day older."""
        with closing(self._database()) as database, database:
            database.execute("UPDATE blob SET unused_since = unused_since - ?", [GRACE_MS])

    def rows(self) -> tuple[set[str], int]:
        """Return the names of rows, and how many of these and of the names to delete are not in use."""
        with closing(self._database()) as database:
            names = {name for (name,) in database.execute("SELECT name FROM blob")}
            query = "SELECT (SELECT count(*) FROM blob WHERE unused_since IS NOT NULL) + (SELECT count(*) FROM dropped_blob)"
            (unused,) = database.execute(query).fetchone()
        return names, unused

    def stored(self) -> set[str]:
        paths = (path.removeprefix(f"{_PREFIX}/") for path in self._server.paths(_PREFIX))
        return {path.rpartition("/")[0] for path in paths if path != IDENTITY}


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 2 * DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)  # neither a job nor a bucket sends a signal


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1])
def test_a_kill_at_any_request_leaves_each_record_its_bytes_and_nothing_for_a_day(
    tmp_path: Path, object_server: ObjectServer, seed: int
) -> None:
    with bucket_gate(object_server.endpoint) as gate:
        scene = Scene(tmp_path / "data", object_server, gate, seed)
        with scene.serve() as service:
            scene.upload(service, scene.content())
        points = [(number, after) for number in (1, 2, 3) for after in (False, True)]
        random.Random(seed).shuffle(points)
        interrupted = []
        for number, after in points:
            interrupted.append(scene.content())
            scene.kill_at(number, after=after, matches=lambda method, _path: method in {"HEAD", "PUT"})
            with scene.serve() as service:
                scene.upload(service, interrupted[-1])
                service.process.wait(DEADLINE_SECONDS)
            scene.let_all_pass()
        assert scene.killed == len(points)
        assert len(scene.acknowledged) == 1
        with scene.serve() as service:  # clients repeat the half of their uploads
            for content in interrupted[::2]:
                scene.upload(service, content)
            scene.read_all(service)
        scene.pass_half_a_day()
        for after in (False, True):  # the sweep, at its list and at its deletion
            for word in ("list-type", "?delete"):
                scene.kill_at(1, after=after, matches=lambda _method, path, word=word: word in path)  # type: ignore[misc]
                with scene.serve() as service:
                    service.process.wait(DEADLINE_SECONDS)
                scene.let_all_pass()
        assert scene.killed == len(points) + 4
        with scene.serve() as service:
            _wait_until(lambda: scene.rows()[1] == 0, "the sweep does not end")
            scene.read_all(service)
            assert scene.stored() == scene.rows()[0]
            assert len(scene.stored()) == 1 + len(interrupted[::2])
