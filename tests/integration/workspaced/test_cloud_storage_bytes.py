"""The bytes of files: downloads and ranges, deduplication, interrupted uploads, clean-up."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import gzip
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.deliveries.conftest import ManualClock
from tests.support.api_client import api_client
from tests.support.cloud_files import FILES, CloudFiles
from workspaced.app import Application, running
from workspaced.core.asgi import Message, Scope
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.blobs.blobs import GRACE_MS
from workspaced.storage.blobs.port import IDENTITY


@pytest.fixture
def files(http: httpx.AsyncClient, workspace: dict[str, Any]) -> CloudFiles:
    return CloudFiles(http=http, workspace=workspace["id"])


def _stored(settings: WorkspacedSettings) -> set[str]:
    """Return the digests of stored files, and the names of unfinished uploads."""
    paths = (path for path in settings.blob_folder.rglob("*") if path.is_file() and path.name != IDENTITY)
    return {"".join(path.relative_to(settings.blob_folder).parts).partition(".")[0] for path in paths}


@asynccontextmanager
async def _another(
    settings: WorkspacedSettings, make_key: MakeKey, *, clock: ManualClock | None = None
) -> AsyncIterator[tuple[CloudFiles, Application]]:
    """Run a service with other settings."""
    async with running(settings, clock=clock) as app, api_client(app, make_key(name="svc:another")) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        yield CloudFiles(http=http, workspace=workspace), app


async def test_a_download_is_saved_and_never_displayed(files: CloudFiles) -> None:
    # contract C8, CS13
    script = b"<script>alert(1)</script>"
    file = await files.upload("Größe 部品.html", script, contentType="text/html")
    response = await files.http.get(f"{FILES}/download/{file['id']}")
    assert (response.status_code, response.content) == (200, script)
    assert response.headers["Content-Type"] == "text/html"
    assert response.headers["Content-Length"] == str(len(script))
    assert response.headers["Content-Disposition"].startswith("attachment; ")
    assert "filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%E9%83%A8%E5%93%81.html" in response.headers["Content-Disposition"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"].startswith("sandbox")
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["ETag"] == f'"{file["sha256"]}"'
    head = await files.http.head(f"{FILES}/download/{file['id']}")
    assert head.content == b""
    for name in ("Content-Length", "Content-Type", "ETag", "Content-Disposition"):
        assert head.headers[name] == response.headers[name]


async def test_ranges_are_served_and_bound_to_a_version(files: CloudFiles) -> None:
    # contract C8
    path = f"{FILES}/download/{(await files.upload(content=b'0123456789'))['id']}"

    async def get(**headers: str) -> httpx.Response:
        return await files.http.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    tag = (await get()).headers["ETag"]
    part = await get(Range="bytes=2-4")
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["Content-Range"] == "bytes 2-4/10"
    assert part.headers["Content-Length"] == "3"
    assert (await get(Range="bytes=-2")).content == b"89"
    assert (await get(Range="bytes=8-99", If_Range=tag)).content == b"89"
    for headers in ({"Range": "bytes=0-1", "If_Range": '"other"'}, {"Range": "bytes=0-1,4-5"}):
        whole = await get(**headers)
        assert (whole.status_code, whole.content) == (200, b"0123456789")
    beyond = await get(Range="bytes=10-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */10")
    assert (await get(If_None_Match=tag, Range="bytes=0-1")).status_code == 304
    assert (await get(If_Match='"other"')).status_code == 412
    head = await files.http.head(path, headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.headers["Content-Length"]) == (206, "2")


async def test_an_empty_file_can_be_stored(files: CloudFiles, settings: WorkspacedSettings) -> None:
    file = await files.upload("empty.bin", b"")
    assert file["size"] == 0
    assert await files.content(file["id"]) == b""
    assert _stored(settings) == {hashlib.sha256(b"").hexdigest()}
    response = await files.http.get(f"{FILES}/download/{file['id']}", headers={"Range": "bytes=0-0"})
    assert response.status_code == 416


@pytest.mark.both_databases
async def test_older_versions_keep_their_bytes_and_names(files: CloudFiles) -> None:
    # contract C8, C11
    first = await files.upload("a.bin", b"one")
    second = await files.upload("b.bin", b"two", id=first["id"])
    assert await files.content(first["id"]) == b"two"
    old = await files.http.get(f"{FILES}/download/{first['id']}?versionId={first['versionId']}")
    assert (old.content, old.headers["Content-Disposition"]) == (b"one", 'attachment; filename="a.bin"')
    assert await files.content(first["id"], versionId=second["versionId"]) == b"two"
    for query in ("versionId=x", f"versionId={first['id']}", "output=nothing"):
        assert (await files.http.get(f"{FILES}/download/{first['id']}?{query}")).status_code == 403


async def test_names_are_not_used_on_disk_and_equal_bytes_are_stored_once(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    # contract C8
    for name in ("..%2f..%2fetc", "CON", "a;b|c", "x" * 255):
        await files.upload(name, b"equal")
    assert _stored(settings) == {hashlib.sha256(b"equal").hexdigest()}
    params = {"workspaceId": files.workspace, "fileName": "../../etc/passwd"}
    assert (await files.http.post(FILES, params=params, content=b"x")).status_code == 400


@pytest.mark.both_databases
async def test_concurrent_uploads_of_equal_bytes_all_succeed(files: CloudFiles, settings: WorkspacedSettings) -> None:
    content = b"equal" * 400_000
    records = await asyncio.gather(*(files.upload(f"{number}.bin", content) for number in range(8)))
    assert len({record["id"] for record in records}) == 8
    assert _stored(settings) == {hashlib.sha256(content).hexdigest()}
    for record in records[:2]:
        assert await files.content(record["id"]) == content


@pytest.mark.both_databases
async def test_concurrent_versions_get_different_numbers(files: CloudFiles) -> None:
    file = (await files.upload())["id"]
    uploads = [files.upload(f"{number}.bin", str(number).encode(), id=file) for number in range(8)]
    assert sorted(record["version"] for record in await asyncio.gather(*uploads)) == list(range(2, 10))


@pytest.mark.both_databases
async def test_a_link_used_by_two_concurrent_uploads_accepts_one(files: CloudFiles) -> None:
    link = await files.link()
    responses = await asyncio.gather(*(files.http.put(link["uploadUrl"], content=bytes([n])) for n in range(4)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]
    taken = next(response.json()["sha256"] for response in responses if response.status_code == 200)
    assert (await files.http.post(f"{FILES}/upload-complete/{link['id']}")).json()["sha256"] == taken


async def test_a_link_receives_the_bytes_of_one_request_at_a_time(files: CloudFiles) -> None:
    # contract C1
    link = await files.link()

    async def parts() -> AsyncIterator[bytes]:
        yield b"first "
        other = await files.http.put(link["uploadUrl"], content=b"other bytes")
        assert (other.status_code, other.json()["code"]) == (409, "request_in_progress")
        yield b"second"

    assert (await files.http.put(link["uploadUrl"], content=parts())).json()["size"] == 12


async def test_an_interrupted_upload_leaves_nothing(files: CloudFiles, settings: WorkspacedSettings) -> None:
    link = await files.link()
    url = httpx.URL(link["uploadUrl"])
    assert isinstance(files.http._transport, httpx.ASGITransport)
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": b"x" * 3_000_000, "more_body": True}, {"type": "http.disconnect"}]
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return next(messages)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": "PUT",
        "scheme": "http",
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "headers": [],
        "client": ("127.0.0.1", 1),
    }
    await files.http._transport.app(scope, receive, send)
    assert sent == []
    assert _stored(settings) == set()
    assert (await files.http.put(link["uploadUrl"], content=b"whole")).status_code == 200, "the link is still good"


async def test_an_upload_beyond_the_size_limit_is_rejected_while_it_arrives(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract C8
    small = dataclasses.replace(settings, limits=Limits(requests_per_minute=0, file_bytes=1_000_000))
    async with _another(small, make_key) as (files, _):

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65_536

        params = {"workspaceId": files.workspace, "fileName": "a.bin"}
        response = await files.http.post(FILES, params=params, content=endless())
        assert (response.status_code, response.headers["Connection"]) == (413, "close")
        assert (await files.http.post(FILES, params=params, content=b"x" * 1_000_001)).status_code == 413
        assert (await files.http.post(FILES, params=params, content=b"x" * 1_000_000)).status_code == 201
        link = await files.link()
        assert link["maxSize"] == 1_000_000
        assert (await files.http.put(link["uploadUrl"], content=endless())).status_code == 413
    assert _stored(settings) == {hashlib.sha256(b"x" * 1_000_000).hexdigest()}


async def test_a_compressed_upload_is_stored_uncompressed(files: CloudFiles) -> None:
    # contract G32
    content = b"part_number,mass_kg\n" + b"00417,0.10\n" * 200_000
    packed, digest = gzip.compress(content), hashlib.sha256(content).hexdigest()
    headers = {"Content-Encoding": "gzip"}
    params = {"workspaceId": files.workspace, "fileName": "a.bin", "sha256": digest}
    response = await files.http.post(FILES, params=params, content=packed, headers=headers)
    assert (response.status_code, response.json()["size"], response.json()["sha256"]) == (201, len(content), digest)
    assert await files.content(response.json()["id"]) == content
    link = await files.link(size=len(content))
    received = await files.http.put(link["uploadUrl"], content=packed, headers=headers)
    assert (received.status_code, received.json()["size"]) == (200, len(content))


async def test_compressed_bytes_of_any_kind_are_stored_as_the_original(files: CloudFiles) -> None:
    for content in (b"", b"x", os.urandom(3_000_000), bytes(3_000_000)):
        params = {"workspaceId": files.workspace, "fileName": "a.bin"}
        packed = gzip.compress(content)
        response = await files.http.post(FILES, params=params, content=packed, headers={"Content-Encoding": "gzip"})
        assert response.status_code == 201
        assert await files.content(response.json()["id"]) == content


async def test_an_invalid_compressed_upload_is_rejected_and_leaves_nothing(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract G32
    small = dataclasses.replace(settings, limits=Limits(requests_per_minute=0, file_bytes=1_000_000))
    async with _another(small, make_key) as (files, _):
        params = {"workspaceId": files.workspace, "fileName": "a.bin"}
        link = await files.link()
        for content, coding, status, code in (
            (gzip.compress(bytes(1_000_001)), "gzip", 413, "too_large"),
            (b"no gzip", "gzip", 400, "bad_gzip"),
            (gzip.compress(b"abc")[:-1], "gzip", 400, "bad_gzip"),
            (b"abc", "br", 415, "unsupported_coding"),
            (gzip.compress(b"abc"), "gzip, gzip", 415, "unsupported_coding"),
        ):
            headers = {"Content-Encoding": coding}
            for response in (
                await files.http.post(FILES, params=params, content=content, headers=headers),
                await files.http.put(link["uploadUrl"], content=content, headers=headers),
            ):
                assert (response.status_code, response.json()["code"]) == (status, code)
    assert _stored(settings) == set()


async def test_a_full_disk_is_a_503_with_a_message_and_leaves_nothing(
    files: CloudFiles, settings: WorkspacedSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    params = {"workspaceId": files.workspace, "fileName": "a.bin"}
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        response = await files.http.post(FILES, params=params, content=b"abc")
    assert (response.status_code, response.json()["code"]) == (503, "storage_full")
    assert response.json()["detail"] == "The disk that holds files is full."
    assert "Retry-After" in response.headers
    assert _stored(settings) == set()
    assert (await files.http.get(FILES, params={"workspaceId": files.workspace})).json() == []
    assert (await files.http.post(FILES, params=params, content=b"abc")).status_code == 201


async def test_a_removed_folder_is_a_503_with_a_message(files: CloudFiles, settings: WorkspacedSettings) -> None:
    away = settings.blob_folder.with_name("away")
    settings.blob_folder.rename(away)
    params = {"workspaceId": files.workspace, "fileName": "a.bin"}
    response = await files.http.post(FILES, params=params, content=b"abc")
    assert (response.status_code, response.json()["code"]) == (503, "storage_failed")
    assert response.json()["detail"] == "The folder that holds files can't be used (No such file or directory)."
    away.rename(settings.blob_folder)
    assert (await files.http.post(FILES, params=params, content=b"abc")).status_code == 201


async def test_missing_bytes_are_reported_before_the_response_begins(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    file = await files.upload(content=b"abc")
    (stored,) = settings.blob_folder.glob(f"{file['sha256'][:2]}/*")
    stored.unlink()
    response = await files.http.get(f"{FILES}/download/{file['id']}")
    assert (response.status_code, response.json()["code"]) == (503, "bytes_missing")


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(requests_per_minute=0, files_per_workspace=1), "1 files"),
        (Limits(requests_per_minute=0, file_bytes_per_workspace=5), "5 bytes"),
    ],
)
async def test_a_workspace_has_quotas(
    settings: WorkspacedSettings, make_key: MakeKey, limits: Limits, sentence: str
) -> None:
    # contract G35
    async with _another(dataclasses.replace(settings, limits=limits), make_key) as (files, _):
        await files.upload(content=b"1234")
        params = {"workspaceId": files.workspace, "fileName": "a.bin"}
        response = await files.http.post(FILES, params=params, content=b"12")
        assert (response.status_code, response.json()["code"]) == (409, "quota_exceeded")
        assert sentence in response.json()["detail"]


async def test_the_number_of_versions_of_a_file_is_limited(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract G35
    limits = Limits(requests_per_minute=0, versions_per_file=2)
    async with _another(dataclasses.replace(settings, limits=limits), make_key) as (files, _):
        file = (await files.upload())["id"]
        await files.upload(id=file)
        params = {"workspaceId": files.workspace, "fileName": "a.bin", "id": file}
        assert (await files.http.post(FILES, params=params, content=b"x")).json()["code"] == "quota_exceeded"


async def test_a_link_expires_after_a_quarter_of_an_hour(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract C1
    clock = ManualClock()
    async with _another(settings, make_key, clock=clock) as (files, _):
        link = await files.link()
        await clock.advance(15 * 60)
        late = await files.http.put(link["uploadUrl"], content=b"abc")
        assert (late.status_code, late.json()["code"]) == (403, "upload_link_expired")


async def test_two_processes_accept_the_same_links(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    async with _another(settings, make_key) as (one, _), _another(settings, make_key) as (other, _):
        link = await one.link()
        assert (await other.http.put(link["uploadUrl"], content=b"abc")).status_code == 200
        assert (await one.http.post(f"{FILES}/upload-complete/{link['id']}")).status_code == 200


async def test_a_link_begins_with_the_public_url(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    known = dataclasses.replace(settings, public_url="https://data.example.org/edw")
    async with _another(known, make_key) as (files, _):
        assert (await files.link())["uploadUrl"].startswith("https://data.example.org/edw/v1/cloud-storage/upload/")


@pytest.mark.both_databases
async def test_unreferenced_bytes_are_deleted_after_the_time_to_restore(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract G25
    kept, dropped = hashlib.sha256(b"kept").hexdigest(), hashlib.sha256(b"dropped").hexdigest()
    async with _another(settings, make_key) as (files, app):
        for content in (b"kept", b"dropped"):
            file = await files.upload(content=content)
            await files.http.delete(f"{FILES}/{file['id']}", params={"workspaceId": files.workspace})
        await files.upload(content=b"kept")
        await app.run_maintenance()
        assert _stored(settings) == {kept, dropped}, "deleted, but it can be restored"
    soon = dataclasses.replace(settings, limits=Limits(requests_per_minute=0, deleted_days=0))
    clock = ManualClock()
    async with _another(soon, make_key, clock=clock) as (files, app):
        await app.run_maintenance()
        assert _stored(settings) == {kept, dropped}, "a backup may still copy them"
        await clock.advance(GRACE_MS / 1_000)
        await app.run_maintenance()
        assert _stored(settings) == {kept}
        log = await files.http.get("/v1/audit-log?action=cloud_storage.file.purged")
        assert len(log.json()) == 2


@pytest.mark.both_databases
async def test_unused_links_leave_no_trace_and_are_counted(
    settings: WorkspacedSettings, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workspaced.resources.cloud_storage.retention._ROWS_AT_ONCE", 1)
    long_ago = ManualClock()
    await long_ago.advance(-2 * 86_400)
    async with _another(settings, make_key, clock=long_ago) as (files, app):
        await app.run_maintenance()  # the first run of the job is over then, and deletes nothing of the following
        never, sent = await files.link(), await files.link()
        assert (await files.http.put(sent["uploadUrl"], content=b"abc")).status_code == 200
        assert _stored(settings) == {sha256 := hashlib.sha256(b"abc").hexdigest()}, sha256
        with capture_logs() as logged:
            await app.run_maintenance()
            await long_ago.advance(GRACE_MS / 1_000)
            await app.run_maintenance()
        dropped = {line["job"]: line["dropped"] for line in logged if line["event"] == "maintenance_done"}
        assert dropped == {"drop_uploads": 4, "sweep_blobs": 1}  # two links and two files without a version
        assert _stored(settings) == set()
        for link in (never, sent):
            assert (await files.http.get(f"{FILES}/{link['id']}")).status_code == 403
