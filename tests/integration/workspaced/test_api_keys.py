"""API keys over HTTP, guests, and the storage of keys (contract A1, A2, A3, A4, A5, A6, A7)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from ingestd.wire.names import KEY_EXPIRES
from tests.support.database_client import DatabaseClient
from workspaced.security.key_format import key_id_of
from workspaced.settings.model import WorkspacedSettings

_KEYS = "/v1/api-keys"


async def _made(http: httpx.AsyncClient, **members: Any) -> dict[str, Any]:
    response = await http.post(_KEYS, json={"name": "svc:bench", "role": "reader", **members})
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def _may(http: httpx.AsyncClient, key: str, method: str = "GET", path: str = "/v1/workspace", **more: Any) -> int:
    return (await http.request(method, path, headers={"x-api-key": key}, **more)).status_code


def _in(**span: float) -> str:
    return (datetime.now(UTC) + timedelta(**span)).isoformat()


async def test_a_key_is_created_shown_once_and_works(http: httpx.AsyncClient, settings: WorkspacedSettings) -> None:
    # contract A1, A2, AK2, AK3
    response = await http.post(_KEYS, json={"name": " svc:bench ", "role": "pusher", "colour": 1})
    made = response.json()
    key = made.pop("key")
    assert (response.status_code, response.headers["Location"]) == (201, f"{_KEYS}/{made['id']}")
    assert (response.headers["Cache-Control"], response.headers["X-Ignored-Fields"]) == ("no-store", "colour")
    assert key_id_of(key) == made["id"]
    assert (made["name"], made["principal"], made["lastFour"], made["guest"]) == (
        "svc:bench",
        "svc:bench",
        key[-4:],
        False,
    )
    assert made["scopes"] == ["data_sinks:push", "data_sinks:read", "workspaces:read"]
    assert made["grants"] == [{"workspaceId": None, "role": "pusher"}]
    year = datetime.fromisoformat(made["expiresAt"]) - datetime.fromisoformat(made["createdAt"])
    assert year == timedelta(days=365)
    assert (made["lastUsedAt"], made["revokedAt"]) == (None, None)
    assert await _may(http, key) == 200
    read = await http.get(f"{_KEYS}/{made['id']}")
    assert {**read.json(), "lastUsedAt": None} == made
    listed = await http.get(_KEYS)
    assert [one["name"] for one in listed.json()] == ["svc:test", "svc:bench"]
    for response in (read, listed):
        assert key not in response.text
    dump = DatabaseClient(settings.database).dump()
    assert key not in dump
    assert made["id"] in dump


async def test_an_invalid_body_is_400_and_creates_no_key(http: httpx.AsyncClient) -> None:
    # contract A2
    for body, code, pointer in (
        ({"name": None}, "required", "/name"),
        ({"name": "  "}, "blank", "/name"),
        ({"name": "a\nb"}, "control_character", "/name"),
        ({"role": "emperor"}, "unknown_role", "/role"),
        ({"role": None}, "required", "/role"),
        ({"workspaceId": "x"}, "not_a_uuid", "/workspaceId"),
        ({"scopes": ["admin"]}, "unknown_scope", "/scopes"),
        ({"scopes": 3}, "wrong_type", "/scopes"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "bad_timestamp", "/expiresAt"),
        ({"expiresAt": "soon"}, "bad_timestamp", "/expiresAt"),
        ({"expiresAt": False}, "bad_timestamp", "/expiresAt"),
        ({"expiresAt": "9999-12-31T23:59:59-23:59"}, "bad_timestamp", "/expiresAt"),
        ({"guest": "yes"}, "wrong_type", "/guest"),
    ):
        response = await http.post(_KEYS, json={"name": "x", "role": "reader", **body})
        assert response.status_code == 400, body
        assert [(error["code"], error["pointer"]) for error in response.json()["errors"]] == [(code, pointer)], body
        assert len((await http.get(_KEYS)).json()) == 1, body


async def test_a_key_for_one_workspace_gives_access_to_that_one_only(
    http: httpx.AsyncClient, workspace: dict[str, Any]
) -> None:
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    made = await _made(http, role="editor", workspaceId=workspace["id"].upper())
    assert made["grants"] == [{"workspaceId": workspace["id"], "role": "editor"}]
    assert await _may(http, made["key"], path=f"/v1/workspace/{workspace['id']}") == 200
    assert await _may(http, made["key"], path=f"/v1/workspace/{other}") == 403
    unknown = await http.post(_KEYS, json={"name": "x", "role": "reader", "workspaceId": str(uuid.uuid4())})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "workspace_not_found")


async def test_a_key_with_fewer_scopes_than_its_role_has_fewer_permissions(http: httpx.AsyncClient, sink: str) -> None:
    # contract A5
    made = await _made(http, role="editor", scopes=["data_sinks:read"])
    assert await _may(http, made["key"], path=sink) == 200
    assert await _may(http, made["key"], "POST", f"{sink}/mass", json={"key": "k", "value": "v"}) == 403
    assert await _may(http, made["key"], "GET", "/v1/workspace") == 403


async def test_a_key_expires_at_its_time_and_never_only_on_request(http: httpx.AsyncClient) -> None:
    # contract A3
    soon = await _made(http, expiresAt=_in(seconds=2))
    assert await _may(http, soon["key"]) == 200
    ends = datetime.fromisoformat(soon["expiresAt"]).timestamp()
    while time.time() <= ends:
        assert await _may(http, http.headers["x-api-key"]) == 200
    assert await _may(http, soon["key"]) == 401
    never = await _made(http, expiresAt="never")
    assert never["expiresAt"] is None
    assert await _may(http, never["key"]) == 200


async def test_a_response_announces_the_end_of_its_key_30_days_before(http: httpx.AsyncClient) -> None:
    # contract A3
    async def announced(key: str) -> str | None:
        response = await http.get("/v1/workspace", headers={"x-api-key": key})
        found: str | None = response.headers.get(KEY_EXPIRES)
        return found

    for days, is_near in ((29, True), (31, False)):
        made = await _made(http, expiresAt=_in(days=days))
        assert await announced(made["key"]) == (made["expiresAt"] if is_near else None)
    never = await _made(http, name="svc:never", expiresAt="never")
    assert await announced(never["key"]) is None
    rotated = await http.post(f"{_KEYS}/{never['id']}/rotate", json={"gracePeriodSeconds": 3_600})
    assert await announced(rotated.json()["key"]) is None
    former = await announced(never["key"])
    assert former is not None
    assert timedelta(0) < datetime.fromisoformat(former) - datetime.now(UTC) < timedelta(hours=1)


@pytest.mark.both_databases
async def test_a_revoked_key_is_401_and_stays_in_the_list(http: httpx.AsyncClient) -> None:
    # contract A4, AK4
    made = await _made(http)
    key = made.pop("key")
    gone = await http.delete(f"{_KEYS}/{made['id']}")
    assert (gone.status_code, {**gone.json(), "revokedAt": None}) == (200, made)
    assert await _may(http, key) == 401
    again = await http.delete(f"{_KEYS}/{made['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "key_revoked")
    rotated = await http.post(f"{_KEYS}/{made['id']}/rotate")
    assert (rotated.status_code, rotated.json()["code"]) == (409, "key_revoked")
    assert (await http.get(f"{_KEYS}/{made['id']}")).json()["revokedAt"] == gone.json()["revokedAt"]
    for method, path in (("GET", "unknown"), ("DELETE", "unknown"), ("POST", "unknown/rotate")):
        assert (await http.request(method, f"{_KEYS}/{path}")).status_code == 404


@pytest.mark.both_databases
async def test_a_rotated_key_keeps_its_id_and_the_old_secret_is_valid_for_the_grace_period(
    http: httpx.AsyncClient,
) -> None:
    # contract A4, AK5
    made = await _made(http)
    first = await http.post(f"{_KEYS}/{made['id']}/rotate")
    assert (first.status_code, first.headers["Cache-Control"]) == (200, "no-store")
    second = await http.post(f"{_KEYS}/{made['id']}/rotate", json={"gracePeriodSeconds": 60})
    keys = [made["key"], first.json()["key"], second.json()["key"]]
    assert {key_id_of(key) for key in keys} == {made["id"]}
    assert [await _may(http, key) for key in keys] == [200, 200, 200]
    last = (await http.post(f"{_KEYS}/{made['id']}/rotate", json={"gracePeriodSeconds": 0})).json()["key"]
    assert [await _may(http, key) for key in (*keys, last)] == [401, 401, 401, 200]
    for seconds in (-1, 604_801, 0.5, "1", True):
        wrong = await http.post(f"{_KEYS}/{made['id']}/rotate", json={"gracePeriodSeconds": seconds})
        assert wrong.status_code == 400


async def test_a_repeated_create_makes_one_key_and_shows_it_once(
    http: httpx.AsyncClient, settings: WorkspacedSettings
) -> None:
    # contract G18
    headers = {"Idempotency-Key": "1"}
    body = {"name": "svc:bench", "role": "reader"}
    first, again = [await http.post(_KEYS, json=body, headers=headers) for _ in range(2)]
    made = first.json()
    key = made.pop("key")
    assert (again.status_code, again.headers["Idempotent-Replayed"], again.json()) == (201, "true", made)
    assert len((await http.get(_KEYS)).json()) == 2
    assert key not in DatabaseClient(settings.database).dump()
    if isinstance(settings.database, Path):
        assert key.encode() not in settings.database.with_name(f"{settings.database.name}-wal").read_bytes()
    refused = await http.post(_KEYS, json={}, headers={"Idempotency-Key": "2"})
    assert refused.status_code == (await http.post(_KEYS, json={}, headers={"Idempotency-Key": "2"})).status_code == 400


async def test_only_global_administrators_may_use_key_operations(
    http: httpx.AsyncClient, workspace: dict[str, Any], make_key: Callable[..., str]
) -> None:
    # contract A5
    limited = make_key(name="owner of one", workspace_id=workspace["id"])
    editor = make_key(name="editor", role="editor")
    for method, path in (
        ("GET", ""),
        ("POST", ""),
        ("GET", f"/{editor[4:12]}"),
        ("DELETE", f"/{editor[4:12]}"),
        ("POST", f"/{editor[4:12]}/rotate"),
    ):
        for key in (limited, editor):
            assert await _may(http, key, method, _KEYS + path, content=b"{") == 403
        assert await _may(http, "nonsense", method, _KEYS + path, content=b"{") == 401
    assert await _may(http, editor) == 200


@pytest.mark.both_databases
async def test_keys_are_sorted_and_paged(http: httpx.AsyncClient) -> None:
    # contract AK1, G19
    for name in ("c", "a", "b"):
        await _made(http, name=name)
    page = await http.get(f"{_KEYS}?sortedBy=name&take=2&skip=1")
    assert [one["name"] for one in page.json()] == ["b", "c"]
    assert page.headers["X-Total-Count"] == "4"
    assert (await http.get(f"{_KEYS}?sortedBy=key")).status_code == 400


async def test_changes_of_keys_are_in_the_audit_log_without_the_key(http: httpx.AsyncClient) -> None:
    made = await _made(http)
    rotated = (await http.post(f"{_KEYS}/{made['id']}/rotate")).json()
    await http.delete(f"{_KEYS}/{made['id']}")
    log = await http.get("/v1/audit-log?action=api_key.*&sortOrder=ASC")
    assert [(row["action"], row["resourceId"]) for row in log.json()] == [
        (f"api_key.{verb}", made["id"]) for verb in ("created", "rotated", "revoked")
    ]
    assert made["key"] not in log.text
    assert rotated["key"] not in log.text


@pytest.mark.both_databases
async def test_guests_can_access_only_workspaces_that_admit_guests(
    http: httpx.AsyncClient, workspace: dict[str, Any]
) -> None:
    # contract A7
    opened = (await http.post("/v1/workspace", json={"label": "Open", "guestsEnabled": True})).json()["id"]
    one = await _made(http, name="guest of one", role="editor", guest=True, workspaceId=workspace["id"])
    everywhere = await _made(http, name="guest of all", role="owner", guest=True)
    closed = f"/v1/workspace/{workspace['id']}"
    assert one["guest"] is True
    assert await _may(http, one["key"], path=closed) == 403
    assert await _may(http, everywhere["key"], path=closed) == 403
    assert await _may(http, everywhere["key"], path=f"/v1/workspace/{opened}") == 200
    assert await _may(http, everywhere["key"], "POST", "/v1/workspace", json={"label": "x"}) == 403
    assert await _may(http, everywhere["key"], path=_KEYS) == 403
    listed = await http.get("/v1/workspace", headers={"x-api-key": everywhere["key"]})
    assert [found["id"] for found in listed.json()] == [opened]
    assert (await http.patch(closed, json={"guestsEnabled": True})).status_code == 200
    for guest in (one, everywhere):
        assert await _may(http, guest["key"], path=closed) == 200
    await http.patch(closed, json={"guestsEnabled": False})
    for guest in (one, everywhere):
        assert await _may(http, guest["key"], path=closed) == 403
