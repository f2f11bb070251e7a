"""A deleted sink is absent immediately; its rows are removed in bounded steps."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from workspaced.app import Application
from workspaced.resources.data_sinks import store
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact

pytestmark = pytest.mark.both_databases


@pytest.fixture
def without_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run no removal job; the test removes the rows."""

    async def finish(_job: object) -> int:
        return 0

    monkeypatch.setattr("workspaced.storage.incremental_job.IncrementalJob.finish", finish)


def rows_of(settings: WorkspacedSettings) -> tuple[int, int]:
    """Return how many entries and sinks the database has."""
    counts = "SELECT (SELECT count(*) FROM data_sink_entry), (SELECT count(*) FROM data_sink)"
    row = transact(settings.database, lambda tx: tx.one(counts))
    assert row
    return int(row[0]), int(row[1])


async def fill(http: httpx.AsyncClient, sink: str, entries: list[dict[str, Any]]) -> None:
    response = await http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
    assert response.status_code == 200, response.text


async def test_a_deleted_sink_is_absent_immediately_and_removed_in_steps(
    without_jobs: None, http: httpx.AsyncClient, sinks: str, sink: str, settings: WorkspacedSettings
) -> None:
    # contract G2, S13
    ids = [str(uuid.uuid4()) for _ in range(3)]
    supplied = [{"key": f"own{index}", "value": "1", "id": one} for index, one in enumerate(ids)]
    await fill(http, sink, supplied + [{"key": f"k{index}", "value": "1"} for index in range(247)])
    made = (await http.get(f"{sink}/k0")).json()["id"]
    assert (await http.delete(sink)).status_code == 200
    assert rows_of(settings) == (250, 1)
    for method, path, body in (
        ("GET", sink, None),
        ("DELETE", sink, None),
        ("GET", f"{sink}/k1", None),
        ("GET", f"{sinks}/SNK-1", None),
        ("PATCH", sink, {"label": "x"}),
        ("POST", f"{sink}/mass", {"key": "k1", "value": "2"}),
    ):
        assert (await http.request(method, path, json=body)).status_code == 404, (method, path)
    assert (await http.get(f"{sinks}/list")).json() == []
    # Its id and those of its entries can be used again.
    again = {
        "label": "again",
        "id": sink.rpartition("/")[2],
        "entries": [{"key": "a", "dataType": "text", "id": ids[0]}],
    }
    assert (await http.post(sinks, json=again)).status_code == 201
    await fill(http, sink, [{"key": "b", "value": "1", "id": ids[1]}, {"key": "c", "value": "1", "id": made}])
    single = await http.post(sink, json={"key": "d", "dataType": "text", "id": ids[2]})
    assert (single.status_code, single.json()["id"]) == (201, ids[2])
    assert (await http.get(f"{sinks}/SNK-1")).status_code == 404

    steps = []
    while done := transact(settings.database, lambda tx: store.remove_deleted(tx, 100)):
        steps.append(done)
    assert steps == [100, 100, 47]  # the three entries with reused ids were gone, and the sink's row is one
    assert rows_of(settings) == (4, 1)
    assert {entry["key"] for entry in (await http.get(sink)).json()["entries"]} == {"a", "b", "c", "d"}


async def test_a_running_service_removes_the_rows(
    http: httpx.AsyncClient, sink: str, settings: WorkspacedSettings
) -> None:
    await fill(http, sink, [{"key": f"k{index}", "value": "1"} for index in range(1_500)])
    assert (await http.delete(sink)).status_code == 200
    app = http._transport.app  # type: ignore[attr-defined]
    assert isinstance(app, Application)
    await app.run_maintenance()
    assert rows_of(settings) == (0, 0)
