"""Operations (contract BL1, BL2, BL3, BL4, BL5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient
from ingestd.client.errors import Conflict, NotFound, Unprocessable
from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.settings.model import Limits, WorkspacedSettings

_ID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.fixture
def blocks(workspace: dict[str, Any]) -> str:
    """Return the path of the workspace's blocks."""
    return f"/v1/workspace/{workspace['id']}/blocks"


@pytest.fixture
def root(workspace: dict[str, Any]) -> str:
    return str(workspace["rootBlock"])


async def _made(http: httpx.AsyncClient, blocks: str, **members: Any) -> dict[str, Any]:
    body = {"workspace": blocks.split("/")[3], **members}
    response = await http.post(blocks, json=body)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def _ids(http: httpx.AsyncClient, path: str) -> list[str]:
    response = await http.get(path)
    assert response.status_code == 200, response.text
    return [block["id"] for block in response.json()]


async def test_a_block_requires_only_its_workspace_and_becomes_a_child_of_the_root(
    http: httpx.AsyncClient, blocks: str, root: str
) -> None:
    # contract B2, B3, G4
    workspace_id = blocks.split("/")[3]
    response = await http.post(blocks, json={"workspace": workspace_id.upper()})
    record = response.json()
    assert response.status_code == 201
    assert response.headers["Location"] == f"{blocks}/{record['id']}"
    stamps = {name: record.pop(name) for name in ("createdAt", "updatedAt")}
    assert stamps["createdAt"] == stamps["updatedAt"]
    assert record == {
        "id": record["id"],
        "label": "",
        "description": "",
        "parentBlock": root,
        "multiplicity": 1,
        "children": [],
        "pdmEnabled": False,
        "propertyGroups": [],
        "previewCustomLink": "",
        "previewSource": "",
        "figures": [],
        "icon": "",
        "interfaces": [],
        "attachments": [],
        "externalLinks": [],
        "pdmThumbnail": "",
        "blockStatuses": [],
        "orderIndex": 0,
        "path": f"/{root}/{record['id']}",
        "type": [],
        "partNumber": "",
        "instances": [],
        "workspace": workspace_id,
        "createdBy": "svc:test",
        "updatedBy": "svc:test",
    }
    assert (await http.get(f"{blocks}/{record['id'].upper()}")).json() == {**record, **stamps}


async def test_all_members_of_a_create_are_read_back(http: httpx.AsyncClient, blocks: str) -> None:
    # contract B5, B8, G6
    given = {
        "id": _ID,
        "label": "Bolt",
        "description": "M6\nsteel",
        "partNumber": "00417",
        "multiplicity": 2.50,
        "pdmEnabled": True,
        "propertyGroups": "one",
        "instances": ["a", "a"],
        "previewCustomLink": "https://example.com",
        "previewSource": "s",
        "figures": ["f"],
        "icon": "bolt",
        "type": ["part", "bought", "part"],
        "attachments": ["x"],
        "externalLinks": ["l"],
        "pdmThumbnail": "t",
        "blockStatuses": ["draft"],
    }
    record = await _made(http, blocks, **given)
    assert {name: record[name] for name in given} == {
        **given,
        "propertyGroups": ["one"],
        "type": ["part", "bought"],
    }
    text = (await http.post(blocks, content=f'{{"workspace":"{record["workspace"]}","multiplicity":0.10}}')).text
    assert '"multiplicity":0.10,' in text


async def test_an_invalid_create_body_is_400_and_nothing_is_stored(
    http: httpx.AsyncClient, blocks: str, root: str
) -> None:
    # contract B2, G8
    for body, code, pointer in (
        ({"workspace": None}, "required", "/workspace"),
        ({"workspace": "x"}, "not_a_uuid", "/workspace"),
        ({"workspace": _ID}, "workspace_mismatch", "/workspace"),
        ({"id": "x"}, "not_a_uuid", "/id"),
        ({"parentBlock": "x"}, "not_a_uuid", "/parentBlock"),
        ({"parentBlock": 1}, "not_a_uuid", "/parentBlock"),
        ({"label": 1}, "wrong_type", "/label"),
        ({"label": "x" * 256}, "too_long", "/label"),
        ({"label": "a\nb"}, "control_character", "/label"),
        ({"description": "x" * 10_001}, "too_long", "/description"),
        ({"icon": "x" * 2_049}, "too_long", "/icon"),
        ({"multiplicity": -0.1}, "out_of_range", "/multiplicity"),
        ({"multiplicity": "1"}, "wrong_type", "/multiplicity"),
        ({"multiplicity": True}, "wrong_type", "/multiplicity"),
        ({"multiplicity": 10**400}, "out_of_range", "/multiplicity"),
        ({"pdmEnabled": 1}, "wrong_type", "/pdmEnabled"),
        ({"type": [1]}, "wrong_type", "/type"),
        ({"figures": ["x"] * 1_001}, "too_long", "/figures"),
        ({"figures": "x" * 2_049}, "too_long", "/figures"),
    ):
        response = await http.post(blocks, json={"workspace": blocks.split("/")[3], **body})
        assert response.status_code == 400, body
        assert [(error["code"], error["pointer"]) for error in response.json()["errors"]] == [(code, pointer)], body
        assert await _ids(http, blocks) == [root], body


async def test_computed_members_are_ignored_on_create_and_named(http: httpx.AsyncClient, blocks: str) -> None:
    body = {"workspace": blocks.split("/")[3], "children": [_ID], "path": "/", "orderIndex": 9, "interfaces": ["i"]}
    response = await http.post(blocks, json=body)
    assert response.headers["X-Ignored-Fields"] == "children,interfaces,orderIndex,path"
    assert (response.json()["orderIndex"], response.json()["children"], response.json()["interfaces"]) == (0, [], [])


async def test_an_id_in_use_by_any_record_is_409_and_free_again_after_a_delete(
    http: httpx.AsyncClient, blocks: str
) -> None:
    # contract G2
    await _made(http, blocks, id=_ID)
    other = (await http.post("/v1/workspace", json={"label": "Other"})).json()["id"]
    for path in (blocks, f"/v1/workspace/{other}/blocks"):
        response = await http.post(path, json={"workspace": path.split("/")[3], "id": _ID})
        assert (response.status_code, response.json()["code"]) == (409, "id_in_use")
    assert (await http.delete(f"{blocks}/{_ID}")).status_code == 200
    assert (await _made(http, blocks, id=_ID))["id"] == _ID


async def test_a_tree_has_at_most_64_levels(http: httpx.AsyncClient, blocks: str, root: str) -> None:
    # contract B4
    parent = root
    for _ in range(63):  # the root is the first level
        parent = (await _made(http, blocks, parentBlock=parent))["id"]
    assert len((await http.get(f"{blocks}/{parent}")).json()["path"].split("/")) == 65
    workspace_id = blocks.split("/")[3]
    deeper = await http.post(blocks, json={"workspace": workspace_id, "parentBlock": parent})
    assert (deeper.status_code, deeper.json()["code"]) == (422, "too_deep")
    top = await _made(http, blocks)
    await _made(http, blocks, parentBlock=top["id"])
    above = (await http.get(f"{blocks}/{parent}")).json()["parentBlock"]
    moved = await http.patch(f"{blocks}/{top['id']}", json={"parentBlock": above})
    assert (moved.status_code, moved.json()["code"]) == (422, "too_deep")
    promoted = await http.patch(f"/v1/workspace/{workspace_id}", json={"rootBlock": {"id": top["id"]}})
    assert (promoted.status_code, promoted.json()["code"]) == (422, "too_deep")


@pytest.mark.both_databases
async def test_the_list_is_sorted_by_depth_then_order_and_the_root_is_first(
    http: httpx.AsyncClient, blocks: str, root: str
) -> None:
    # contract B1, B4, B5
    first, second = await _made(http, blocks, label="b"), await _made(http, blocks, label="a", type=["part"])
    below = await _made(http, blocks, parentBlock=first["id"], label="c", type=["a", "part"])
    listed = (await http.get(blocks)).json()
    assert [block["id"] for block in listed] == [root, first["id"], second["id"], below["id"]]
    assert [block["orderIndex"] for block in listed] == [0, 0, 1, 0]
    assert listed[0]["children"] == [first["id"], second["id"]]
    assert (listed[0]["parentBlock"], listed[0]["path"]) == ("", f"/{root}")
    assert listed[3]["path"] == f"/{root}/{first['id']}/{below['id']}"
    assert listed[3] == (await http.get(f"{blocks}/{below['id']}")).json()
    await http.patch(f"{blocks}/{first['id']}", json={"orderIndex": 1.5})
    assert await _ids(http, blocks) == [root, second["id"], first["id"], below["id"]]
    assert (await http.get(f"{blocks}/{root}")).json()["children"] == [second["id"], first["id"]]
    assert await _ids(http, f"{blocks}?parentBlock={root}") == [second["id"], first["id"]]
    assert await _ids(http, f"{blocks}?type=part") == [second["id"], below["id"]]
    assert await _ids(http, f"{blocks}?type=part&parentBlock={first['id'].upper()}") == [below["id"]]
    assert await _ids(http, f"{blocks}?parentBlock={_ID}") == []
    page = await http.get(f"{blocks}?sortedBy=label&sortOrder=DESC&take=2&skip=1")
    assert [block["label"] for block in page.json()] == ["b", "a"]
    assert page.headers["X-Total-Count"] == "4"
    for wrong in ("take=0", "skip=x", "sortedBy=colour", "parentBlock=x"):
        assert (await http.get(f"{blocks}?{wrong}")).status_code == 400


async def test_a_long_list_is_streamed_completely(http: httpx.AsyncClient, blocks: str, root: str) -> None:
    made = [(await _made(http, blocks, label=f"B{number}"))["id"] for number in range(1_100)]
    assert await _ids(http, blocks) == [root, *made]


async def test_a_patch_returns_exactly_the_types(http: httpx.AsyncClient, blocks: str) -> None:
    # contract B7
    block = await _made(http, blocks, type=["part"])
    path = f"{blocks}/{block['id']}"
    response = await http.patch(path, json={"type": ["b", "a", "b"]})
    assert (response.status_code, response.json()) == (200, {"type": ["b", "a"]})
    assert (await http.patch(path, json={"label": "Bolt"})).json() == {"type": ["b", "a"]}
    assert (await http.patch(path, json={"type": None})).json() == {"type": []}
    whole = await http.patch(path, json={"label": "Nut"}, headers={"Prefer": "return=representation"})
    assert whole.headers["Preference-Applied"] == "return=representation"
    assert whole.json() == (await http.get(path)).json()
    assert whole.headers["ETag"] == (await http.get(path)).headers["ETag"]


async def test_sending_back_an_unchanged_record_changes_nothing(
    http: httpx.AsyncClient, blocks: str, root: str
) -> None:
    block = await _made(http, blocks, label="Bolt", multiplicity=0.5, type=["part"])
    for block_id in (block["id"], root):
        before = await http.get(f"{blocks}/{block_id}")
        response = await http.patch(f"{blocks}/{block_id}", json=before.json())
        assert response.status_code == 200, response.text
        assert "workspace" in response.headers["X-Ignored-Fields"].split(",")
        after = await http.get(f"{blocks}/{block_id}")
        assert (after.json(), after.headers["ETag"]) == (before.json(), before.headers["ETag"])


async def test_null_resets_a_member_to_its_default(http: httpx.AsyncClient, blocks: str, root: str) -> None:
    # contract B7
    one = await _made(http, blocks, label="Bolt", multiplicity=4, figures=["f"], pdmEnabled=True)
    two = await _made(http, blocks, parentBlock=one["id"])
    path = f"{blocks}/{one['id']}"
    await http.patch(path, json={"label": None, "multiplicity": None, "figures": None, "pdmEnabled": None})
    record = (await http.get(path)).json()
    assert (record["label"], record["multiplicity"], record["figures"], record["pdmEnabled"]) == ("", 1, [], False)
    await http.patch(f"{blocks}/{two['id']}", json={"parentBlock": None})
    assert (await http.get(f"{blocks}/{two['id']}")).json()["parentBlock"] == root
    assert (await http.patch(path, json={"orderIndex": None})).status_code == 400
    assert (await http.patch(path, json={"orderIndex": 1e301})).status_code == 400


@pytest.mark.both_databases
async def test_a_moved_block_becomes_the_last_child_with_all_its_descendants(client: AsyncClient) -> None:
    # contract B5
    workspace = await client.create_workspace("Rocket")
    one, two = [await client.create_block(workspace.id) for _ in range(2)]
    child = await client.create_block(workspace.id, parent_block=one.id)
    await client.create_block(workspace.id, parent_block=two.id)
    seen = [await client.get_block(workspace.id, name) for name in (workspace.root_block, one.id, child.id)]
    moved = await client.update_block(workspace.id, one.id, parent_block=two.id)
    assert (moved.parent_block, moved.order_index) == (two.id, 1)
    read = await client.get_block(workspace.id, child.id)
    assert read.path == f"/{workspace.root_block}/{two.id}/{one.id}/{child.id}"
    for block in seen:
        assert (await client.get_block(workspace.id, block.id, if_none_match=block.etag)).etag != block.etag


async def test_a_block_cannot_move_below_itself_and_the_root_cannot_move(client: AsyncClient) -> None:
    # contract B4, B7
    workspace = await client.create_workspace("Rocket")
    root = workspace.root_block
    one = (await client.create_block(workspace.id)).id
    two = (await client.create_block(workspace.id, parent_block=one)).id
    foreign = (await client.create_workspace("Other")).root_block
    for block, parent, code in (
        (one, one, "cycle"),
        (one, two, "cycle"),
        (root, one, "cycle"),
        (root, root, "cycle"),
        (one, _ID, "parent_not_found"),
        (one, foreign, "parent_not_found"),
    ):
        with pytest.raises(Unprocessable) as refused:
            await client.update_block(workspace.id, block, parent_block=parent, label="x")
        assert refused.value.code == code
    assert all(block.label != "x" for block in await client.list_blocks(workspace.id))


async def test_deleting_a_leaf_returns_it(client: AsyncClient) -> None:
    # contract B6
    workspace = await client.create_workspace("Rocket")
    block = await client.create_block(workspace.id, label="Bolt")
    assert set((await client.get_workspace(workspace.id)).blocks) == {workspace.root_block, block.id}
    assert await client.delete_block(workspace.id, block.id) == block
    with pytest.raises(NotFound):
        await client.delete_block(workspace.id, block.id)
    assert (await client.get_workspace(workspace.id)).blocks == (workspace.root_block,)
    assert (await client.get_block(workspace.id, workspace.root_block)).children == ()


@pytest.mark.both_databases
async def test_a_block_with_children_is_deleted_only_with_force_and_the_root_never(
    client: AsyncClient,
) -> None:
    # contract B6
    workspace = await client.create_workspace("Rocket")
    root = workspace.root_block
    one = await client.create_block(workspace.id)
    two = await client.create_block(workspace.id, parent_block=one.id)
    three = await client.create_block(workspace.id, parent_block=two.id)
    for block, force, code in ((one.id, None, "has_children"), (root, None, "root_block"), (root, True, "root_block")):
        with pytest.raises(Conflict) as held:
            await client.delete_block(workspace.id, block, force=force)
        assert held.value.code == code
    assert len(await client.list_blocks(workspace.id)) == 4
    gone = await client.delete_block(workspace.id, one.id, force=True)
    assert gone.children == (two.id,)
    assert [block.id for block in await client.list_blocks(workspace.id)] == [root]
    with pytest.raises(NotFound):
        await client.get_block(workspace.id, three.id)


async def test_force_is_true_or_false(http: httpx.AsyncClient, blocks: str) -> None:
    block = (await _made(http, blocks))["id"]
    assert (await http.delete(f"{blocks}/{block}?force=maybe")).status_code == 400
    assert (await http.get(f"{blocks}/{block}")).status_code == 200


async def test_the_number_of_blocks_is_limited_and_a_delete_permits_another(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    narrow = WorkspacedSettings(data=settings.data, postgres=settings.postgres, limits=Limits(blocks_per_workspace=2))
    async with running(narrow) as app, api_client(app, make_key()) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "a"})).json()["id"]
        blocks = f"/v1/workspace/{workspace}/blocks"
        made = await _made(http, blocks)
        full = await http.post(blocks, json={"workspace": workspace})
        assert (full.status_code, full.json()["code"]) == (409, "quota_exceeded")
        await http.delete(f"{blocks}/{made['id']}")
        await _made(http, blocks)


async def test_adding_or_removing_a_block_changes_the_version_of_its_workspace_and_a_label_does_not(
    http: httpx.AsyncClient, blocks: str
) -> None:
    # contract W4
    workspace = f"/v1/workspace/{blocks.split('/')[3]}"
    tag = (await http.get(workspace)).headers["ETag"]
    block = (await _made(http, blocks))["id"]
    grown = (await http.get(workspace, headers={"If-None-Match": tag})).headers["ETag"]
    assert grown != tag
    await http.patch(f"{blocks}/{block}", json={"label": "x", "orderIndex": 7})
    assert (await http.get(workspace, headers={"If-None-Match": grown})).status_code == 304
    await http.delete(f"{blocks}/{block}")
    assert (await http.get(workspace, headers={"If-None-Match": grown})).status_code == 200


async def test_any_caller_may_read_the_blocks_of_a_public_workspace(http: httpx.AsyncClient) -> None:
    made = (await http.post("/v1/workspace", json={"label": "Open", "publicCanReadEnabled": True})).json()
    del http.headers["x-api-key"]
    blocks = f"/v1/workspace/{made['id']}/blocks"
    assert await _ids(http, blocks) == [made["rootBlock"]]
    assert (await http.delete(f"{blocks}/{made['rootBlock']}")).status_code == 401
