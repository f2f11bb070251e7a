from __future__ import annotations

import uuid

import pytest

from ingestd.client.errors import BadRequest, Conflict, NotFound, NotModified, PreconditionFailed
from ingestd.client.operations import extension
from ingestd.client.records import EntryChange, Icon, NewEntry, Sink, SinkInfo, Workspace
from tests.support.client_calls import AnyClient, done


async def test_a_sink_is_created_with_its_entries_and_read_back_equal(client: AnyClient, workspace: Workspace) -> None:
    icon = Icon(source="DevIcon", name="scale", metadata={"size": 1})
    entries = [
        NewEntry(key="a", data_type="scalar", value="0.10", id=str(uuid.uuid4())),
        NewEntry(key="b", data_type="text"),
    ]
    made = await done(
        client.create_sink(workspace.id, label="Mass", description="d", tags="x, y", icon=icon, entries=entries)
    )
    assert (made.label, made.description, made.tags, made.icon) == ("Mass", "d", "x, y", icon)
    assert (made.visible_id, made.serial, made.workspace_id) == ("SNK-1", 1, workspace.id)
    assert [(entry.key, entry.value, entry.data_type) for entry in made.entries] == [
        ("a", "0.10", "scalar"),
        ("b", None, "text"),
    ]
    assert await done(client.get_sink(workspace.id, made.id)) == made
    assert await done(client.get_sink(workspace.id, "snk-1")) == made
    with pytest.raises(NotModified):
        await done(client.get_sink(workspace.id, made.id, if_none_match=made.etag))
    with pytest.raises(Conflict) as caught:
        await done(client.create_sink(workspace.id, label="Again", id=made.id))
    assert caught.value.code == "id_in_use"


async def test_sinks_are_listed_with_and_without_entries_and_in_part(client: AnyClient, workspace: Workspace) -> None:
    made = [await done(client.create_sink(workspace.id, label=f"S{number}")) for number in range(5)]
    assert list(await done(client.get_sinks(workspace.id))) == made
    assert list(await done(client.get_sinks(workspace.id, take=1, skip=1, sorted_by="label"))) == made[1:2]
    bare = await done(client.list_sinks(workspace.id, sort_order="DESC"))
    assert [sink.id for sink in bare] == [sink.id for sink in reversed(made)]
    assert all(type(sink) is SinkInfo for sink in bare)
    assert await done(client.list_sinks(workspace.id, sort_order="DESC", take=2, skip=1)) == bare[1:3]


async def test_a_patch_of_a_sink_changes_only_the_given_members(
    client: AnyClient, workspace: Workspace, sink: Sink
) -> None:
    await done(client.update_sink(workspace.id, sink.id, tags="t", description="d", icon=Icon(name="scale")))
    await done(client.update_sink(workspace.id, sink.id, description=None, label="Power"))
    changed = await done(client.get_sink(workspace.id, sink.id))
    assert (changed.label, changed.tags, changed.description, changed.icon) == ("Power", "t", None, Icon(name="scale"))
    with pytest.raises(PreconditionFailed):
        await done(client.update_sink(workspace.id, sink.id, label="x", if_match=sink.etag))
    with pytest.raises(PreconditionFailed):
        await done(client.delete_sink(workspace.id, sink.id, if_match=sink.etag))
    await done(client.delete_sink(workspace.id, sink.id, if_match=changed.etag))
    with pytest.raises(NotFound):
        await done(client.delete_sink(workspace.id, sink.id))


@pytest.mark.parametrize("key", ["mass", "a/b", "a%2Fb", "kg²", "list", "+", "100%", "?#", "x y"])
async def test_an_entry_can_have_any_key(client: AnyClient, workspace: Workspace, sink: Sink, key: str) -> None:
    made = await done(client.create_entry(workspace.id, sink.id, key=key, data_type="scalar", value="15 kg"))
    assert (made.key, made.value, made.data_sink_id) == (key, "15 kg", sink.id)
    assert await done(client.get_entry(workspace.id, sink.id, key)) == made
    with pytest.raises(NotModified):
        await done(client.get_entry(workspace.id, sink.id, key, if_none_match=made.etag))
    changed = await done(client.update_entry(workspace.id, sink.id, key, value=None, if_match=made.etag))
    assert (changed.value, changed.data_type, changed.id) == (None, "scalar", made.id)
    with pytest.raises(PreconditionFailed):
        await done(client.update_entry(workspace.id, sink.id, key, data_type="text", if_match=made.etag))
    with pytest.raises(Conflict) as caught:
        await done(client.create_entry(workspace.id, sink.id, key=key, data_type="scalar"))
    assert caught.value.code == "duplicate_key"
    await done(client.delete_entry(workspace.id, sink.id, key))
    with pytest.raises(NotFound):
        await done(client.get_entry(workspace.id, sink.id, key))


async def test_a_mass_update_sets_a_value_of_new_and_existing_entries(
    client: AnyClient, workspace: Workspace, sink: Sink
) -> None:
    made = await done(client.mass_update_entry(workspace.id, sink.id, key="k", value="1", data_type="text"))
    changed = await done(client.mass_update_entry(workspace.id, sink.id, key="k", value="2"))
    assert (changed.id, changed.value, changed.data_type) == (made.id, "2", "text")
    late = await done(
        client.mass_update_entry(workspace.id, sink.id, key="late", value="new", observed_at=made.updated_at)
    )
    old = await done(
        client.mass_update_entry(workspace.id, sink.id, key="late", value="old", observed_at=workspace.created_at)
    )
    assert old.value == late.value == "new"


async def test_a_bulk_result_is_entries_counts_or_results_by_item(
    client: AnyClient, workspace: Workspace, sink: Sink
) -> None:
    items = [EntryChange(key="a", value="1"), EntryChange(key="b", value="2", data_type="text")]
    first = await done(client.mass_update(workspace.id, sink.id, items))
    assert [(entry.key, entry.value, entry.data_type) for entry in first if entry] == [
        ("a", "1", "scalar"),
        ("b", "2", "text"),
    ]
    removal = [EntryChange(key="a", delete=True), EntryChange(key="c", value="3"), items[1]]
    counts = await done(client.mass_update_minimal(workspace.id, sink.id, removal))
    assert (counts.accepted, counts.created, counts.deleted) == (3, 1, 1)
    assert (await done(client.mass_update(workspace.id, sink.id, [EntryChange(key="c", delete=True)]))) == (None,)
    mixed = [EntryChange(key="", value="1"), EntryChange(key="d", value="4")]
    with pytest.raises(BadRequest) as caught:
        await done(client.mass_update(workspace.id, sink.id, mixed))
    assert [error.pointer for error in caught.value.errors] == ["/0/key"]
    partly = await done(client.mass_update_partial(workspace.id, sink.id, mixed))
    assert (partly.succeeded, partly.failed) == (1, 1)
    assert partly.results[0].error is not None
    assert [error.pointer for error in partly.results[0].error.errors] == ["/0/key"]
    assert partly.results[1].entry is not None
    assert partly.results[1].entry.value == "4"


async def test_a_repeated_request_with_its_idempotency_key_is_applied_once(
    client: AnyClient, workspace: Workspace
) -> None:
    twice = [
        await done(client.create_sink(workspace.id, label="Once", idempotency_key="k", client_id="other"))
        for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert len(await done(client.list_sinks(workspace.id))) == 1
    noted = await done(client.send(extension("GET", "/v1/audit-log", query={"workspaceId": workspace.id})))
    assert [row["clientId"] for row in noted.value or () if row["action"] == "data_sink.created"] == ["other"]
