from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.support.database_client import DatabaseClient
from workspaced.settings.model import WorkspacedSettings


@pytest.mark.sqlite
@pytest.mark.parametrize("request_id", ["", "x" * 65, "a b", "é"])
async def test_an_invalid_request_id_is_replaced(http: httpx.AsyncClient, request_id: str) -> None:
    # contract G21
    response = await http.get("/healthz", headers=[(b"X-Request-Id", request_id.encode("latin-1"))])
    assert len(response.headers["X-Request-Id"]) == 32


@pytest.mark.sqlite
async def test_trace_context_is_passed_on(http: httpx.AsyncClient) -> None:
    # contract G21
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert (await http.get("/healthz", headers={"traceparent": parent})).headers["traceparent"] == parent
    assert "traceparent" not in (await http.get("/healthz", headers={"traceparent": "x"})).headers


async def test_a_database_locked_by_another_program_is_503_with_retry_after(
    http: httpx.AsyncClient, sink: str, settings: WorkspacedSettings
) -> None:
    # contract P1
    with DatabaseClient(settings.database).locked_sinks():
        writes = [http.post(f"{sink}/mass", json={"key": f"k{n}", "value": "v"}) for n in range(3)]
        responses = await asyncio.gather(*writes)
        assert [response.status_code for response in responses] == [503] * 3
        assert all(response.headers["Retry-After"] == "1" for response in responses)
        assert (await http.get(sink)).status_code == 200
    assert (await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})).status_code == 200


async def test_an_internal_error_is_an_opaque_500(
    http: httpx.AsyncClient, sink: str, settings: WorkspacedSettings
) -> None:
    # contract G13
    other_client = DatabaseClient(settings.database)
    other_client.execute("ALTER TABLE data_sink_entry RENAME TO hidden")
    response = await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "data_sink_entry" not in response.text
    other_client.execute("ALTER TABLE hidden RENAME TO data_sink_entry")
    assert (await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})).status_code == 200


async def test_readiness_depends_on_the_schema_and_liveness_does_not(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract G23, OP1, OP2
    del http.headers["x-api-key"]
    assert (await http.get("/readyz")).status_code == 200
    with DatabaseClient(settings.database).older_schema():
        assert (await http.get("/readyz")).json()["code"] == "schema_behind"
        assert (await http.get("/healthz")).status_code == 200
    assert (await http.get("/readyz")).status_code == 200
