from __future__ import annotations

import uuid

import httpx
import pytest

from ingestd.client.errors import BadRequest, Forbidden, NotModified, PreconditionFailed, value_of
from ingestd.client.operations import extension
from ingestd.client.records import Workspace
from tests.support.client_calls import AnyClient, done
from tests.support.recorded_workspaced import RecordedWorkspaced


@pytest.fixture
def file(service: RecordedWorkspaced, workspace: Workspace) -> tuple[str, str]:
    """Return the id of a new file, and its version."""
    made = httpx.post(
        f"{service.url}/v1/cloud-storage",
        params={"workspaceId": workspace.id, "fileName": "motor.bin"},
        content=b"motor",
        headers={"x-api-key": service.api_key, "Content-Type": "application/octet-stream"},
    )
    return made.raise_for_status().json()["id"], made.headers["ETag"]


async def test_a_file_changes_only_with_the_current_version(
    client: AnyClient, workspace: Workspace, file: tuple[str, str]
) -> None:
    made, first = file
    await done(client.update_file(made, file_name="engine.bin", description="d", tags="t", if_match=first))
    read = await done(client.send(extension("GET", "/v1/cloud-storage/{file}", names={"file": made})))
    changed = value_of(read)
    assert (changed["fileName"], changed["description"], changed["tags"]) == ("engine.bin", "d", "t")
    assert await done(client.get_metadata(made)) == {}
    await done(client.replace_metadata(made, {"kg": 1.5, "of": ["a"]}))
    assert await done(client.get_metadata(made)) == {"kg": 1.5, "of": ["a"]}
    with pytest.raises(PreconditionFailed):
        await done(client.update_file(made, tags=None, if_match=first))
    with pytest.raises(PreconditionFailed):
        await done(client.replace_metadata(made, {}, if_match=first))
    with pytest.raises(PreconditionFailed):
        await done(client.delete_file(made, workspace_id=workspace.id, if_match=first))
    with pytest.raises(BadRequest):
        await done(client.update_file(made, file_name="a/b"))
    await done(client.delete_file(made, workspace_id=workspace.id))
    with pytest.raises(Forbidden):
        await done(client.get_metadata(made))


async def test_metadata_of_a_current_version_is_not_sent_again(client: AnyClient, file: tuple[str, str]) -> None:
    with pytest.raises(NotModified):
        await done(client.get_metadata(file[0], if_none_match=file[1]))


async def test_a_conversion_can_be_repeated(client: AnyClient, file: tuple[str, str]) -> None:
    await done(client.retry_conversion(file[0]))
    await done(client.retry_conversion(file[0], force=True))
    with pytest.raises(Forbidden):
        await done(client.retry_conversion(str(uuid.uuid4())))
