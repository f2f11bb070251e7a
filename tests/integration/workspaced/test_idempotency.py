from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings


async def test_a_repeated_post_gets_the_first_response_and_changes_nothing(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G18
    headers = {"Idempotency-Key": '"batch 1"'}
    first = await http.post(sinks, json={"label": "a", "colour": 1}, headers=headers)
    again = await http.post(sinks, json={"label": "a", "colour": 1}, headers={"Idempotency-Key": "batch 1"})
    assert "Idempotent-Replayed" not in first.headers
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    for name in ("Location", "ETag", "Content-Type", "X-Ignored-Fields"):
        assert again.headers[name] == first.headers[name]
    assert again.content == first.content
    assert len((await http.get(f"{sinks}/list")).json()) == 1


async def test_a_replay_never_restores_an_old_value(http: httpx.AsyncClient, sink: str) -> None:
    # contract M7
    body, headers = [{"key": "k", "value": "old"}], {"Idempotency-Key": "1"}
    await http.post(f"{sink}/mass", json=body, headers=headers)
    await http.post(f"{sink}/mass", json={"key": "k", "value": "new"})
    assert (await http.post(f"{sink}/mass", json=body, headers=headers)).json()[0]["value"] == "old"
    assert (await http.get(f"{sink}/k")).json()["value"] == "new"


async def test_another_body_or_query_with_the_same_key_is_422(http: httpx.AsyncClient, sink: str) -> None:
    # contract G18
    headers = {"Idempotency-Key": "1"}
    await http.post(f"{sink}/mass", json={"key": "k", "value": "1"}, headers=headers)
    other = await http.post(f"{sink}/mass", json={"key": "k", "value": "2"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    query = await http.post(f"{sink}/mass?create=false", json={"key": "k", "value": "1"}, headers=headers)
    assert query.status_code == 422


async def test_rejections_are_stored_too(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    # contract G18
    entry = {"key": "k", "dataType": "t"}
    assert (await http.post(sink, json=entry, headers={"Idempotency-Key": "c"})).status_code == 201
    conflict = await http.post(sink, json=entry, headers={"Idempotency-Key": "d"})
    assert conflict.status_code == 409
    await http.delete(f"{sink}/k")
    kept = await http.post(sink, json=entry, headers={"Idempotency-Key": "d"})
    assert (kept.status_code, kept.headers["Idempotent-Replayed"]) == (409, "true")
    assert (await http.post(sink, json=entry)).status_code == 201
    invalid = await http.post(sinks, json={}, headers={"Idempotency-Key": "e"})
    again = await http.post(sinks, json={}, headers={"Idempotency-Key": "e"})
    assert (invalid.status_code, again.status_code, again.headers["Idempotent-Replayed"]) == (400, 400, "true")


async def test_keys_of_other_paths_and_callers_are_independent(
    http: httpx.AsyncClient, sinks: str, make_key: Callable[..., str]
) -> None:
    # contract G18
    headers = {"Idempotency-Key": "1"}
    assert (await http.post(sinks, json={"label": "a"}, headers=headers)).json()["serial"] == 1
    assert (await http.post("/v1/workspace", json={"label": "a"}, headers=headers)).status_code == 201
    other = {**headers, "x-api-key": make_key(name="other")}
    assert (await http.post(sinks, json={"label": "a"}, headers=other)).json()["serial"] == 2


async def test_of_equal_concurrent_requests_one_is_applied(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G18
    responses = await asyncio.gather(
        *(http.post(sinks, json={"label": "a"}, headers={"Idempotency-Key": "1"}) for _ in range(20))
    )
    assert {response.status_code for response in responses} <= {201, 409}
    assert all(
        response.json()["code"] == "request_in_progress" for response in responses if response.status_code == 409
    )
    assert len((await http.get(f"{sinks}/list")).json()) == 1


@pytest.mark.sqlite
@pytest.mark.parametrize("key", ["", " ", "x" * 256, '"', "ü"])
async def test_an_invalid_key_is_400(http: httpx.AsyncClient, sinks: str, key: str) -> None:
    # contract G18
    response = await http.post(sinks, json={"label": "a"}, headers=[(b"Idempotency-Key", key.encode("latin-1"))])
    assert (response.status_code, response.json()["code"]) == (400, "bad_idempotency_key")


async def test_a_stored_response_expires(settings: WorkspacedSettings, make_key: Callable[..., str]) -> None:
    # contract G18
    forgetful = WorkspacedSettings(data=settings.data, postgres=settings.postgres, idempotency_hours=0)
    headers = {"x-api-key": make_key(), "ClientId": "tests", "Idempotency-Key": "1"}
    async with (
        running(forgetful) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s", headers=headers) as http,
    ):
        for _ in range(3):
            response = await http.post("/v1/workspace", json={"label": "a"})
            assert (response.status_code, "Idempotent-Replayed" in response.headers) == (201, False)
