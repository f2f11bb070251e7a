from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from ingestd.client import Client
from ingestd.client.errors import Forbidden, NotFound, Unauthenticated, Unprocessable
from ingestd.client.records import Workspace
from tests.support.client_calls import AnyClient, collected, done
from tests.support.recorded_workspaced import RecordedWorkspaced


async def test_a_key_is_created_used_rotated_and_revoked(
    client: AnyClient, service: RecordedWorkspaced, workspace: Workspace
) -> None:
    issued = await done(client.create_api_key(workspace.id, role="reader", workspace_id=workspace.id))
    assert issued.key is not None
    assert issued.key not in repr(issued)
    assert [(grant.workspace_id, grant.role) for grant in issued.grants] == [(workspace.id, "reader")]
    known = await done(client.get_api_key(issued.id))
    assert (known.name, known.last_four, known.revoked_at) == (workspace.id, issued.key[-4:], None)
    with Client(service.url, api_key=issued.key) as reader:
        assert reader.get_workspace(workspace.id) == workspace
        with pytest.raises(Forbidden):
            reader.create_sink(workspace.id, label="x")
    rotated = await done(client.rotate_api_key(issued.id, grace_period_seconds=0))
    assert rotated.key not in {None, issued.key}
    assert (await done(client.rotate_api_key(issued.id))).id == issued.id
    assert (await done(client.revoke_api_key(issued.id))).revoked_at is not None
    with Client(service.url, api_key=rotated.key) as revoked, pytest.raises(Unauthenticated):
        revoked.get_workspace(workspace.id)
    with pytest.raises(NotFound):
        await done(client.revoke_api_key(issued.id))


async def test_a_key_can_be_created_without_expiry_and_with_fewer_scopes(client: AnyClient) -> None:
    forever = await done(
        client.create_api_key("svc:a", role="reader", scopes=["data_sinks:read"], expires_at="never", guest=True)
    )
    assert (forever.expires_at, forever.scopes, forever.guest) == (None, ("data_sinks:read",), True)
    end = datetime(2090, 1, 1, tzinfo=UTC)
    assert (await done(client.create_api_key("svc:a", role="reader", expires_at=end))).expires_at == end
    with pytest.raises(Unprocessable):
        await done(client.create_api_key("svc:a", role="reader", workspace_id=str(uuid.uuid4())))


async def test_keys_are_listed_and_paged(client: AnyClient) -> None:
    for number in range(3):
        await done(client.create_api_key(f"svc:{number}", role="reader"))
    listed = await done(client.list_api_keys(sorted_by="name", sort_order="DESC"))
    assert await done(client.list_api_keys(sorted_by="name", sort_order="DESC", take=2, skip=1)) == listed[1:3]
    paged = await collected(client.iter_api_keys(sorted_by="name", sort_order="DESC", page_length=2))
    assert [key.id for key in paged] == [key.id for key in listed]


async def test_the_audit_log_has_actor_and_action(client: AnyClient, workspace: Workspace) -> None:
    sink = await done(client.create_sink(workspace.id, label="a"))
    await done(client.update_sink(workspace.id, sink.id, label="b"))
    rows = await done(client.list_audit_log(workspace_id=workspace.id, action="data_sink.*", sort_order="ASC"))
    assert [(row.action, row.resource_id, row.client_id) for row in rows] == [
        ("data_sink.created", sink.id, "bench-3"),
        ("data_sink.updated", sink.id, "bench-3"),
    ]
    assert rows[1].changed == ("label",)
    assert (rows[0].principal, rows[0].ip, rows[0].resource_type) == ("svc:test", "127.0.0.1", "data_sink")
    whole = await done(client.list_audit_log(workspace_id=workspace.id))
    assert await collected(client.iter_audit_log(workspace_id=workspace.id, page_length=1)) == list(whole)
    assert await done(client.list_audit_log(workspace_id=workspace.id, take=1, skip=1)) == whole[1:2]
    later = rows[1].time + timedelta(hours=1)
    assert await done(client.list_audit_log(workspace_id=workspace.id, since=later)) == ()
    assert await collected(client.iter_audit_log(workspace_id=workspace.id, since=rows[0].time, until=later)) != []
