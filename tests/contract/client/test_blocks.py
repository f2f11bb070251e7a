from __future__ import annotations

import pytest

from ingestd.client.errors import Conflict, NotFound, NotModified, PreconditionFailed, Unprocessable
from ingestd.client.records import Workspace
from tests.support.client_calls import AnyClient, done


async def test_a_block_is_created_changed_and_deleted(client: AnyClient, workspace: Workspace) -> None:
    made = await done(
        client.create_block(
            workspace.id,
            label="Wheel",
            description="d",
            part_number="00417",
            multiplicity=0.5,
            pdm_enabled=True,
            property_groups=["p"],
            instances=["i"],
            preview_custom_link="l",
            preview_source="s",
            figures=["f"],
            icon="wheel",
            type=["part"],
            attachments=["a"],
            external_links=["e"],
            pdm_thumbnail="t",
            block_statuses=["b"],
        )
    )
    assert (made.label, made.part_number, made.multiplicity, made.type) == ("Wheel", "00417", 0.5, ("part",))
    assert (made.parent_block, made.path) == (workspace.root_block, f"/{workspace.root_block}/{made.id}")
    assert (made.property_groups, made.instances, made.block_statuses) == (("p",), ("i",), ("b",))
    assert await done(client.get_block(workspace.id, made.id)) == made
    with pytest.raises(NotModified):
        await done(client.get_block(workspace.id, made.id, if_none_match=made.etag))
    changed = await done(client.update_block(workspace.id, made.id, label="Rim", order_index=2, if_match=made.etag))
    assert (changed.label, changed.order_index, changed.part_number) == ("Rim", 2, "00417")
    assert await done(client.update_block_types(workspace.id, made.id, type=["a", "b"])) == ("a", "b")
    with pytest.raises(PreconditionFailed):
        await done(client.update_block_types(workspace.id, made.id, type=[], if_match=made.etag))
    gone = await done(client.delete_block(workspace.id, made.id))
    assert (gone.label, gone.type) == ("Rim", ("a", "b"))
    with pytest.raises(NotFound):
        await done(client.get_block(workspace.id, made.id))


async def test_blocks_form_a_tree(client: AnyClient, workspace: Workspace) -> None:
    bus = await done(client.create_block(workspace.id, label="Bus", type=["assembly"]))
    wheels = [
        await done(client.create_block(workspace.id, label=f"W{number}", parent_block=bus.id)) for number in range(3)
    ]
    listed = await done(client.list_blocks(workspace.id))
    assert [block.id for block in listed] == [workspace.root_block, bus.id, *(wheel.id for wheel in wheels)]
    assert list(await done(client.list_blocks(workspace.id, parent_block=bus.id, take=2, skip=1))) == wheels[1:]
    assert [block.id for block in await done(client.list_blocks(workspace.id, type="assembly"))] == [bus.id]
    with pytest.raises(Unprocessable) as cycle:
        await done(client.update_block(workspace.id, bus.id, parent_block=wheels[0].id))
    assert cycle.value.code == "cycle"
    with pytest.raises(Conflict) as held:
        await done(client.delete_block(workspace.id, bus.id))
    assert held.value.code == "has_children"
    gone = await done(client.delete_block(workspace.id, bus.id, force=True))
    assert gone.children == tuple(wheel.id for wheel in wheels)
    assert len(await done(client.list_blocks(workspace.id))) == 1
