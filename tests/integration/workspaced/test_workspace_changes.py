"""Operations (contract WS4, WS5), and the effects of deleting a workspace."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient
from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.resources.workspaces import retention
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

_ID = "123e4567-e89b-12d3-a456-426614174000"


def _now() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def path(workspace: dict[str, Any]) -> str:
    return f"/v1/workspace/{workspace['id']}"


async def _block(http: httpx.AsyncClient, path: str, **members: Any) -> str:
    response = await http.post(f"{path}/blocks", json={"workspace": path.rsplit("/", 1)[1], **members})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def test_changing_a_label_returns_the_whole_record(http: httpx.AsyncClient, path: str) -> None:
    # contract W5
    response = await http.patch(path, json={"label": " Probe ", "blocks": [], "colour": 1})
    assert response.status_code == 200
    assert (response.json()["label"], response.headers["X-Ignored-Fields"]) == ("Probe", "blocks,colour")
    read = await http.get(path)
    assert (read.json(), read.headers["ETag"]) == (response.json(), response.headers["ETag"])


async def test_an_update_without_changes_is_200_and_keeps_the_version(http: httpx.AsyncClient, path: str) -> None:
    # contract W5
    for content in (b"{}", b"", b'{"rootBlock":null}', b'{"rootBlock":{}}'):
        before = await http.get(path)
        response = await http.patch(path, content=content)
        assert (response.status_code, response.json()) == (200, before.json()), content
        assert response.headers["ETag"] == before.headers["ETag"], content


async def test_an_invalid_update_body_is_400_with_a_pointer_to_the_mistake(http: httpx.AsyncClient, path: str) -> None:
    for body, pointer in (
        ({"label": ""}, "/label"),
        ({"label": None}, "/label"),
        ({"label": "x" * 256}, "/label"),
        ({"rootBlock": 1}, "/rootBlock"),
        ({"rootBlock": "x"}, "/rootBlock"),
        ({"rootBlock": {"id": 7}}, "/rootBlock/id"),
        ({"rootBlock": {"multiplicity": -1}}, "/rootBlock/multiplicity"),
        ({"guestsEnabled": "yes"}, "/guestsEnabled"),
    ):
        before = (await http.get(path)).json()
        response = await http.patch(path, json=body)
        assert (response.status_code, [error["pointer"] for error in response.json()["errors"]]) == (400, [pointer])
        assert (await http.get(path)).json() == before, body


async def test_the_root_block_is_changed_through_its_workspace(client: AsyncClient) -> None:
    # contract W5
    workspace = await client.create_workspace("Rocket")
    for body in ({"label": "Vehicle"}, {"id": workspace.root_block, "description": "all of it", "parentBlock": ""}):
        assert (await client.update_workspace(workspace.id, root_block=body)).root_block == workspace.root_block
    root = await client.get_block(workspace.id, workspace.root_block)
    assert (root.label, root.description, root.parent_block) == ("Vehicle", "all of it", "")


@pytest.mark.both_databases
@pytest.mark.parametrize("as_text", [True, False])
async def test_another_block_becomes_the_root_and_the_old_root_its_last_child(
    http: httpx.AsyncClient, path: str, workspace: dict[str, Any], as_text: bool
) -> None:
    # contract W5
    old = workspace["rootBlock"]
    stage = await _block(http, path)
    engine = await _block(http, path, parentBlock=stage)
    pump = await _block(http, path, parentBlock=engine)
    seen = {block: (await http.get(f"{path}/blocks/{block}")).headers["ETag"] for block in (old, stage, engine, pump)}
    response = await http.patch(path, json={"rootBlock": engine if as_text else {"id": engine, "label": "Engine"}})
    assert (response.status_code, response.json()["rootBlock"]) == (200, engine)
    assert response.json()["blocks"][0] == engine
    listed = (await http.get(f"{path}/blocks")).json()
    assert {block["id"]: block["path"] for block in listed} == {
        engine: f"/{engine}",
        pump: f"/{engine}/{pump}",
        old: f"/{engine}/{old}",
        stage: f"/{engine}/{old}/{stage}",
    }
    assert (listed[0]["parentBlock"], listed[0]["children"]) == ("", [pump, old])
    assert listed[0]["label"] == ("" if as_text else "Engine")
    for block, tag in seen.items():
        fresh = await http.get(f"{path}/blocks/{block}", headers={"If-None-Match": tag})
        assert fresh.status_code == 200
    assert (await http.delete(f"{path}/blocks/{old}?force=true")).status_code == 200
    assert (await http.delete(f"{path}/blocks/{engine}?force=true")).json()["code"] == "root_block"


async def test_a_root_block_must_be_a_block_of_the_workspace_without_a_parent(
    http: httpx.AsyncClient, path: str, workspace: dict[str, Any]
) -> None:
    # contract W5
    foreign = (await http.post("/v1/workspace", json={"label": "Other"})).json()["rootBlock"]
    block = await _block(http, path)
    for root, code in (
        (str(uuid.uuid4()), "root_block_not_found"),
        (foreign, "root_block_not_found"),
        ({"id": block, "parentBlock": workspace["rootBlock"]}, "cycle"),
    ):
        response = await http.patch(path, json={"rootBlock": root, "label": "x"})
        assert (response.status_code, response.json()["code"]) == (422, code)
    assert (await http.get(path)).json()["label"] == "Rocket"
    assert (await http.get(path)).json()["rootBlock"] == workspace["rootBlock"]


async def test_only_an_owner_can_publish_a_workspace(
    http: httpx.AsyncClient, path: str, make_key: Callable[..., str]
) -> None:
    # contract A7
    editor = {"x-api-key": make_key(name="editor", role="editor")}
    as_read = (await http.get(path)).json()
    assert (await http.patch(path, json={**as_read, "label": "Mine"}, headers=editor)).status_code == 200
    for flag in ("publicCanReadEnabled", "guestsEnabled"):
        assert (await http.patch(path, json={flag: True}, headers=editor)).status_code == 403
    assert (await http.patch(path, json={"publicCanReadEnabled": True})).json()["publicCanReadEnabled"] is True
    del http.headers["x-api-key"]
    assert (await http.get(path)).status_code == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_mistakes_of_a_workspace_update_are_checked_in_the_order_of_the_contract(
    http: httpx.AsyncClient, path: str, make_key: Callable[..., str], method: str
) -> None:
    # contract G12
    assert (await http.request(method, "/v1/workspace/nonsense", json={})).status_code == 400
    assert (await http.request(method, f"/v1/workspace/{uuid.uuid4()}", json={})).status_code == 404
    for role, allowed in (("reader", False), ("pusher", False), ("editor", method == "PATCH")):
        key = make_key(name=role, role=role)
        response = await http.request(method, path, json={}, headers={"x-api-key": key})
        assert response.status_code == (200 if allowed else 403)
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    limited = make_key(name="limited", role="owner", workspace_id=other)
    for target in (path, f"/v1/workspace/{uuid.uuid4()}"):
        response = await http.request(method, target, content=b"{", headers={"x-api-key": limited})
        assert (response.status_code, response.json()["error"]) == (403, "Forbidden")
    if method == "PATCH":
        too_large = await http.patch(path, content=b" " * 1_048_577)
        other_type = await http.patch(path, content=b"x", headers={"Content-Type": "text/plain"})
        assert (too_large.status_code, other_type.status_code) == (413, 415)
    del http.headers["x-api-key"]
    assert (await http.request(method, path, content=b"{")).status_code == 401


async def test_a_deleted_workspace_is_returned_and_is_absent_everywhere(
    http: httpx.AsyncClient, path: str, sink: str, make_key: Callable[..., str]
) -> None:
    # contract G2, W6
    await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    block = await _block(http, path)
    record = (await http.get(path)).json()
    member = make_key(name="member", role="owner", workspace_id=record["id"])
    gone = await http.delete(path)
    assert (gone.status_code, gone.json()) == (200, record)
    assert (await http.get("/v1/workspace")).json() == []
    asked: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("PATCH", path, {}),
        ("DELETE", path, None),
        ("GET", f"{path}/blocks", None),
        ("POST", f"{path}/blocks", {"workspace": record["id"]}),
        ("GET", f"{path}/blocks/{block}", None),
        ("PATCH", f"{path}/blocks/{block}", {"label": "x"}),
        ("DELETE", f"{path}/blocks/{block}", None),
        ("GET", f"{path}/data-sink", None),
        ("GET", f"{path}/data-sink/list", None),
        ("POST", f"{path}/data-sink", {"label": "x"}),
        ("GET", sink, None),
        ("PATCH", sink, {"label": "x"}),
        ("DELETE", sink, None),
        ("POST", sink, {"key": "a", "dataType": "t"}),
        ("GET", f"{sink}/k", None),
        ("PATCH", f"{sink}/k", {"value": "x"}),
        ("DELETE", f"{sink}/k", None),
        ("POST", f"{sink}/mass", {"key": "k", "value": "x"}),
        ("POST", f"{sink}/mass", [{"key": "k", "value": "x"}]),
    ]
    for method, target, body in asked:
        response = await http.request(method, target, json=body)
        assert response.status_code == 404, (method, target)
        response = await http.request(method, target, json=body, headers={"x-api-key": member})
        assert response.status_code == 403, (method, target)
    again = await http.post("/v1/workspace", json={"label": "x", "id": record["id"]})
    assert (again.status_code, again.json()["code"]) == (409, "id_in_use")


async def test_a_deleted_public_workspace_is_not_readable(http: httpx.AsyncClient) -> None:
    made = (await http.post("/v1/workspace", json={"label": "Open", "publicCanReadEnabled": True})).json()
    await http.delete(f"/v1/workspace/{made['id']}")
    del http.headers["x-api-key"]
    assert (await http.get(f"/v1/workspace/{made['id']}")).status_code == 401


@pytest.mark.both_databases
async def test_a_restored_workspace_has_all_its_content(
    http: httpx.AsyncClient, path: str, sink: str, settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract W7
    await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    record = (await http.get(path)).json()
    member = make_key(name="member", role="reader", workspace_id=record["id"])
    await http.delete(path)
    transact(settings.database, lambda tx: retention.restore(tx, record["id"], now=_now()))
    for key in (http.headers["x-api-key"], member):
        assert (await http.get(f"{sink}/k", headers={"x-api-key": key})).json()["value"] == "v"
    restored = (await http.get(path)).json()
    assert {**restored, "updatedAt": ""} == {**record, "updatedAt": ""}
    with pytest.raises(ConflictProblem, match="is not deleted"):
        transact(settings.database, lambda tx: retention.restore(tx, record["id"], now=_now()))
    with pytest.raises(NotFoundProblem, match="deleted or not"):
        transact(settings.database, lambda tx: retention.restore(tx, _ID, now=_now()))


@pytest.mark.both_databases
async def test_a_workspace_is_purged_after_its_retention_time_and_nothing_of_it_stays(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract G25, W7
    brief = WorkspacedSettings(data=settings.data, postgres=settings.postgres, limits=Limits(deleted_days=0))
    async with running(brief) as app, api_client(app, make_key()) as http:
        kept, gone = [(await http.post("/v1/workspace", json={"label": label})).json()["id"] for label in "ab"]
        for workspace in (kept, gone):
            path = f"/v1/workspace/{workspace}"
            block = await _block(http, path)
            await _block(http, path, parentBlock=block)
            entries = [{"key": "k", "value": "v", "dataType": "t"}]
            await http.post(f"{path}/data-sink", json={"label": "s", "entries": entries})
        await http.delete(f"/v1/workspace/{gone}")
        taken = await http.post("/v1/workspace", json={"label": "anew", "id": gone})
        assert taken.status_code == 409
        await app.run_maintenance()
        again = await http.post("/v1/workspace", json={"label": "anew", "id": gone})
        assert (again.status_code, len(again.json()["blocks"])) == (201, 1)
        assert (await http.get(f"/v1/workspace/{gone}/data-sink/list")).json() == []
        assert len((await http.get(f"/v1/workspace/{kept}/blocks")).json()) == 3
        assert len((await http.get(f"/v1/workspace/{kept}/data-sink")).json()[0]["entries"]) == 1
        reported = (await http.get("/v1/audit-log", params={"action": "workspace.purged"})).json()
        assert [(row["workspaceId"], row["principal"]) for row in reported] == [(gone, "system")]
    counts = transact(
        settings.database,
        lambda tx: [
            (tx.one(f"SELECT count(*) FROM {table}") or (0,))[0] for table in ("data_sink", "data_sink_entry", "block")
        ],
    )
    assert counts == [1, 1, 4]
