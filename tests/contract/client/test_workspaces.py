from __future__ import annotations

import uuid

import msgspec
import pytest

from ingestd.client.errors import BadRequest, NotFound, NotModified, PreconditionFailed, Unprocessable, value_of
from ingestd.client.operations import extension
from ingestd.client.records import Workspace
from tests.support.client_calls import AnyClient, done


async def test_a_workspace_is_created_and_read_back_equal(client: AnyClient) -> None:
    wanted = str(uuid.uuid4())
    made = await done(
        client.create_workspace(
            "Rover",
            id=wanted,
            public_can_read_enabled=True,
            exports_enabled=False,
            guests_enabled=True,
            statuses=["draft", "released"],
            current_workspace_version=wanted,
        )
    )
    assert (made.id, made.label, made.statuses) == (wanted, "Rover", ("draft", "released"))
    assert (made.public_can_read_enabled, made.exports_enabled, made.guests_enabled) == (True, False, True)
    assert made.blocks == (made.root_block,)
    assert made.created_at == made.updated_at
    read = await done(client.get_workspace(wanted))
    assert read == made
    assert read.etag == made.etag == '"1"'


async def test_workspaces_are_filtered_and_listed_in_part(client: AnyClient) -> None:
    label = uuid.uuid4().hex
    made = [await done(client.create_workspace(f"{label} {number}")) for number in range(5)]
    assert list(await done(client.list_workspaces(filters=label))) == made
    assert list(await done(client.list_workspaces(filters={"label": {"eq": f"{label} 3"}}))) == [made[3]]
    assert list(await done(client.list_workspaces(filters=label, take=2, skip=1, sort_order="DESC"))) == made[3:1:-1]
    assert made[0] in await done(client.list_workspaces())
    with pytest.raises(BadRequest, match="sortedBy"):
        await done(client.list_workspaces(sorted_by="colour"))


async def test_a_change_requires_the_version_that_was_read(client: AnyClient, workspace: Workspace) -> None:
    changed = await done(client.update_workspace(workspace.id, label="Lander", if_match=workspace.etag))
    assert (changed.label, changed.root_block) == ("Lander", workspace.root_block)
    assert changed.etag != workspace.etag
    with pytest.raises(PreconditionFailed):
        await done(client.update_workspace(workspace.id, label="Orbiter", if_match=workspace.etag))
    with pytest.raises(PreconditionFailed):
        await done(client.delete_workspace(workspace.id, if_match=workspace.etag))
    with pytest.raises(NotModified):
        await done(client.get_workspace(workspace.id, if_none_match=changed.etag))
    assert await done(client.get_workspace(workspace.id, if_none_match=workspace.etag)) == changed


async def test_another_block_can_become_the_root(client: AnyClient, workspace: Workspace) -> None:
    block = await done(client.create_block(workspace.id, label="Bus"))
    changed = await done(client.update_workspace(workspace.id, root_block={"id": block.id, "label": "Rover bus"}))
    assert changed.root_block == block.id
    with pytest.raises(Unprocessable):
        await done(client.update_workspace(workspace.id, root_block={"id": str(uuid.uuid4())}))


async def test_deleting_a_workspace_returns_it(client: AnyClient, workspace: Workspace) -> None:
    assert await done(client.delete_workspace(workspace.id)) == workspace
    with pytest.raises(NotFound):
        await done(client.get_workspace(workspace.id))


async def test_an_extension_of_the_interface_is_reached_with_names_query_and_body(
    client: AnyClient, workspace: Workspace
) -> None:
    health = await done(client.send(extension("GET", "/healthz")))
    assert (health.value, health.operation) == ({"status": "ok"}, "GET /healthz")
    body = msgspec.json.encode({"name": "svc:a b", "role": "reader", "workspaceId": workspace.id})
    key = value_of(await done(client.send(extension("POST", "/v1/api-keys", body=body))))
    listed = value_of(await done(client.send(extension("GET", "/v1/api-keys", query={"take": "500"}))))
    assert key["id"] in {one["id"] for one in listed}
    gone = await done(client.send(extension("DELETE", "/v1/api-keys/{key}", names={"key": key["id"]})))
    assert value_of(gone)["revokedAt"]
    absent = await done(client.send(extension("DELETE", "/v1/api-keys/{key}", names={"key": "a/b"})))
    assert (absent.ok, absent.status, absent.value) == (False, 404, None)
    with pytest.raises(NotFound):
        value_of(absent)
