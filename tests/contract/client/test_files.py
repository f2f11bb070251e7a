from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ingestd.client import AsyncClient, Client
from ingestd.client.errors import BadRequest, Conflict, Forbidden, NotModified, PreconditionFailed, Unprocessable
from ingestd.client.records import Workspace
from tests.support.client_calls import AnyClient, collected, done
from tests.support.recorded_workspaced import RecordedWorkspaced

_BYTES = bytes(range(256)) * 3_000
_SHA256 = hashlib.sha256(_BYTES).hexdigest()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "motor ü.bin"
    path.write_bytes(_BYTES)
    return path


async def test_a_file_is_uploaded_and_downloaded_unchanged(
    client: AnyClient, workspace: Workspace, source: Path, tmp_path: Path
) -> None:
    made = await done(client.upload_file(workspace.id, source, sha256=_SHA256, client_id="other"))
    assert (made.file_name, made.size, made.sha256, made.version) == ("motor ü.bin", len(_BYTES), _SHA256, 1)
    assert (made.workspace_id, made.status) == (workspace.id, "available")
    target = tmp_path / "there" / "motor.bin"
    target.parent.mkdir()
    target.write_bytes(b"older")
    assert await done(client.download_file(made.id, target)) == len(_BYTES)
    assert target.read_bytes() == _BYTES
    assert list(target.parent.iterdir()) == [target]
    assert b"".join(await collected(client.iter_file(made.id))) == _BYTES
    noted = await done(client.list_audit_log(workspace_id=workspace.id, action="cloud_storage.*"))
    assert {row.client_id for row in noted} == {"other"}


def _pieces() -> Iterator[bytes]:
    yield b"a,b\n"
    yield b"1,2\n"


async def _async_pieces() -> AsyncIterator[bytes]:
    for piece in _pieces():
        yield piece


async def test_iterators_and_bytes_are_uploaded_as_versions_of_one_file(
    client: AnyClient, workspace: Workspace
) -> None:
    first = await done(client.upload_file(workspace.id, b"", file_name="mass.csv", content_type="text/csv"))
    assert (first.size, first.content_type) == (0, "text/csv")
    assert await collected(client.iter_file(first.id)) == []
    again = await done(client.upload_file(workspace.id, _pieces(), file_name="mass.csv", id=first.id))
    assert (again.id, again.version, again.size) == (first.id, 2, 8)
    versions = await done(client.list_file_versions(first.id))
    assert [(version.version, version.size, version.current) for version in versions] == [(2, 8, True), (1, 0, False)]
    assert await collected(client.iter_file_versions(first.id, page_length=1)) == list(versions)
    assert await done(client.list_file_versions(first.id, take=1, skip=1, sort_order="DESC")) == versions[1:]
    assert await collected(client.iter_file(first.id, version_id=versions[1].version_id)) == []
    if isinstance(client, AsyncClient):
        third = await client.upload_file(workspace.id, _async_pieces(), file_name="mass.csv", id=first.id)
        assert third.sha256 == again.sha256
    with pytest.raises(ValueError, match="file_name"):
        await done(client.upload_file(workspace.id, b"x"))


async def test_a_file_is_uploaded_through_a_link_in_three_steps(
    client: AnyClient, workspace: Workspace, source: Path
) -> None:
    link = await done(client.create_upload_link(workspace.id, file_name="motor.bin", size=len(_BYTES), sha256=_SHA256))
    assert link.upload_url not in repr(link)
    assert (await done(client.get_file(link.id))).status == "uploading"
    sent = await done(client.upload_by_link(link, source))
    assert (sent.id, sent.size, sent.sha256) == (link.id, len(_BYTES), _SHA256)
    with pytest.raises(Conflict):
        await done(client.upload_by_link(link, source))
    with pytest.raises(Unprocessable):
        await done(client.complete_upload(link.id, sha256="0" * 64))
    made = await done(client.complete_upload(link.id, sha256=_SHA256))
    assert (made.status, made.size) == ("available", len(_BYTES))
    assert b"".join(await collected(client.iter_file(made.id))) == _BYTES


async def test_metadata_of_a_file_changes_only_with_the_current_version(
    client: AnyClient, workspace: Workspace, source: Path
) -> None:
    made = await done(client.upload_file(workspace.id, source))
    await done(client.update_file(made.id, file_name="engine.bin", description="d", tags="t", if_match=made.etag))
    changed = await done(client.get_file(made.id))
    assert (changed.file_name, changed.description, changed.tags) == ("engine.bin", "d", "t")
    with pytest.raises(NotModified):
        await done(client.get_file(made.id, if_none_match=changed.etag))
    assert await done(client.get_metadata(made.id)) == {}
    await done(client.replace_metadata(made.id, {"kg": 1.5, "of": ["a"]}, if_match=changed.etag))
    assert await done(client.get_metadata(made.id)) == {"kg": 1.5, "of": ["a"]}
    with pytest.raises(PreconditionFailed):
        await done(client.update_file(made.id, tags=None, if_match=made.etag))
    with pytest.raises(PreconditionFailed):
        await done(client.delete_file(made.id, workspace_id=workspace.id, if_match=made.etag))
    with pytest.raises(BadRequest):
        await done(client.update_file(made.id, file_name="a/b"))
    await done(client.delete_file(made.id, workspace_id=workspace.id))
    with pytest.raises(Forbidden):
        await done(client.get_file(made.id))


async def test_files_are_listed_and_paged(client: AnyClient, workspace: Workspace) -> None:
    made = [
        await done(client.upload_file(workspace.id, str(number).encode(), file_name=f"{number}.bin"))
        for number in range(5)
    ]
    listed = await done(client.list_files(workspace.id, sorted_by="fileName", sort_order="DESC"))
    assert [file.id for file in listed] == [file.id for file in reversed(made)]
    paged = await collected(client.iter_files(workspace.id, sorted_by="fileName", sort_order="DESC", page_length=2))
    assert [file.id for file in paged] == [file.id for file in listed]
    assert len(await done(client.list_files(workspace.id, take=2, skip=4))) == 1


async def test_a_conversion_can_be_repeated(client: AnyClient, workspace: Workspace, source: Path) -> None:
    made = await done(client.upload_file(workspace.id, source))
    assert made.conversion.outputs == ()
    await done(client.retry_conversion(made.id))
    await done(client.retry_conversion(made.id, force=True))
    with pytest.raises(Forbidden):
        await done(client.retry_conversion(str(uuid.uuid4())))


def _contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


async def test_a_rejected_download_leaves_the_target_unchanged(client: AnyClient, tmp_path: Path) -> None:
    target = tmp_path / "motor.bin"
    target.write_bytes(b"older")
    with pytest.raises(Forbidden):
        await done(client.download_file(str(uuid.uuid4()), target))
    with pytest.raises(Forbidden):
        await collected(client.iter_file(str(uuid.uuid4())))
    assert _contents(tmp_path) == [b"older"]


async def test_a_blocking_client_rejects_an_asynchronous_source(
    service: RecordedWorkspaced, workspace: Workspace
) -> None:
    with Client(service.url, api_key=service.api_key) as client, pytest.raises(TypeError, match="asynchronous source"):
        client.upload_file(workspace.id, _async_pieces(), file_name="x")
