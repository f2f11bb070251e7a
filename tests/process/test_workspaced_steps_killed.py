"""Deferred work of a request, of a service that is killed before it is done."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx

from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key


def _sink(http: httpx.Client, entries: int) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    sink = str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])
    if entries:
        _bulk(http, sink, entries)
    return sink


def _bulk(http: httpx.Client, sink: str, entries: int) -> None:
    body = json.dumps([{"key": f"k{index:05d}", "value": "1"} for index in range(entries)])
    headers = {"Prefer": "return=minimal", "Content-Type": "application/json"}
    assert http.post(f"{sink}/mass", content=body, headers=headers).status_code == 200


def _until(data: Path, query: str, wanted: tuple[int, ...]) -> None:
    """Poll until the database has the expected content, because the service sends no signal."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    with closing(sqlite3.connect(data / "workspaced.db", timeout=DEADLINE_SECONDS)) as database:
        while (found := database.execute(query).fetchone()) != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)


def test_an_interrupted_removal_of_a_sink_is_completed_after_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        sink = _sink(http, 5_000)
        _bulk(http, _sink(http, 0), 10)
        assert http.delete(sink).status_code == 200
        service.kill()
    with WorkspaceService(data) as service, service.client(key) as http:
        assert http.get(sink).status_code == 404
        _until(data, "SELECT (SELECT count(*) FROM data_sink_entry), (SELECT count(*) FROM data_sink)", (10, 1))


def test_every_event_of_an_acknowledged_bulk_gets_its_deliveries_in_order_after_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data, "--dev") as service, service.client(key) as http:
        sink = _sink(http, 0)
        for _ in range(4):
            made = http.post(
                "/v1/webhooks", json={"url": "http://127.0.0.1:9009/", "dataEvents": ["data_sink.entry.*"]}
            )
            assert made.status_code == 201
        _bulk(http, sink, 3_000)
        service.kill()
    with WorkspaceService(data, "--dev"):
        _until(data, "SELECT (SELECT count(*) FROM event_fan_out), (SELECT count(*) FROM delivery)", (0, 12_000))
    with closing(sqlite3.connect(data / "workspaced.db")) as database:
        rows = database.execute(
            "SELECT d.webhook, e.sequence FROM delivery d JOIN event e ON e.number = d.event ORDER BY d.webhook, d.number"
        ).fetchall()
    for webhook in {row[0] for row in rows}:
        assert [sequence for owner, sequence in rows if owner == webhook] == list(range(1, 3_001))
