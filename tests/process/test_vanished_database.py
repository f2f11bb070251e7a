"""The service when the machine of its PostgreSQL vanishes from the network."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

import httpx

from tests.support.network_hosts import network
from tests.support.postgres_server import replicated_server
from tests.support.workspaced_process import WorkspaceService, workspaced

# A commit that waits for the lost standby waits for ever; its client is not asked.
_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE application_name = 'workspaced' AND wait_event IS DISTINCT FROM 'SyncRep'"
)


def test_the_next_write_is_made_within_15_seconds_at_the_promoted_standby_and_the_lost_server_ends_its_sessions(
    tmp_path: Path,
) -> None:
    # contract P2
    with network() as cables:
        first, second = cables.host(), cables.host()
        with replicated_server(first, second) as servers:
            there = {"WORKSPACED_DATABASE_URL": servers.url}
            assert workspaced("migrate", environment=there).returncode == 0
            key = workspaced("keys", "create", "k", "--role", "owner", environment=there).stdout.strip()
            with WorkspaceService(tmp_path / "data", environment=there) as service, service.client(key) as http:
                workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
                sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
                acknowledged = [_write(http, sink, number) for number in range(3)]
                with _Readiness(service.url) as readiness:
                    first.unplug()
                    begun = time.monotonic()
                    servers.standby.run("pg_ctl", "-w", "promote")
                    acknowledged.append(_write(http, sink, 3))
                    assert time.monotonic() - begun <= 15
                    readiness.wait_for(200)
                assert max(readiness.seconds) <= 5
                assert 503 in readiness.statuses
                stored = {entry["key"] for entry in http.get(sink).json()["entries"]}
                assert stored == set(acknowledged)
                with servers.primary.connect_locally() as lost:
                    while lost.execute(_SESSIONS).fetchone() != (0,):
                        assert time.monotonic() - begun <= 25, "the server keeps the sessions of a client that vanished"


def _write(http: httpx.Client, sink: str, number: int) -> str:
    """Write an entry, again after each 503; return its key."""
    entry = {"key": f"k{number}", "value": "1"}
    while (response := http.post(f"{sink}/mass", json=entry)).status_code == 503:
        continue
    assert response.status_code == 200, response.text
    return entry["key"]


class _Readiness:
    """Asks /readyz during a block."""

    def __init__(self, url: str) -> None:
        self.seconds: list[float] = []
        self.statuses: list[int] = []
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def wait_for(self, status: int) -> None:
        until = time.monotonic() + 60
        while self.statuses[-1:] != [status]:
            assert time.monotonic() < until, self.statuses
            self._ended.wait(0.05)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as http:
            while not self._ended.wait(0.05):
                begun = time.monotonic()
                self.statuses.append(http.get("/readyz").status_code)
                self.seconds.append(time.monotonic() - begun)
