"""Hosts with one database and one bucket; hosts with another store; the move of files between stores."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.deliveries.conftest import ManualClock
from tests.support.api_client import api_client
from tests.support.bucket_gate import BucketGate, bucket_gate
from tests.support.cloud_files import FILES, CloudFiles
from tests.support.object_server import SECRET, ObjectServer, blob_environment
from tests.support.workspaced_process import workspaced
from workspaced.app import Application, running
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.blobs.blobs import GRACE_MS
from workspaced.storage.blobs.bucket import PART_BYTES
from workspaced.storage.blobs.port import IDENTITY
from workspaced.storage.port import StorageUnusable

_CSV = b"part,mass\n00417,1.5\n"
_TARGET = "s3://bench/files/x"
_LARGE = os.urandom(PART_BYTES + 100_000)

Copy = Callable[..., Awaitable[CompletedProcess[str]]]


@pytest.fixture
def with_bucket(settings: WorkspacedSettings, object_server: ObjectServer, tmp_path: Path) -> WorkspacedSettings:
    return dataclasses.replace(settings, bucket=object_server.bucket_address(tmp_path, "files/x"))


@pytest.fixture
def gate(object_server: ObjectServer) -> Iterator[BucketGate]:
    with bucket_gate(object_server.endpoint) as gate:
        yield gate


@pytest.fixture
def through_gate(with_bucket: WorkspacedSettings, gate: BucketGate) -> WorkspacedSettings:
    """Settings like `with_bucket`, of a host that sends its requests to the gate."""
    assert with_bucket.bucket
    return dataclasses.replace(with_bucket, bucket=dataclasses.replace(with_bucket.bucket, endpoint=gate.endpoint))


@pytest.fixture
def copy(settings: WorkspacedSettings, object_server: ObjectServer, tmp_path: Path) -> Copy:
    """`workspaced blobs copy`, with the data folder and the database of the tests."""
    database = {"WORKSPACED_DATABASE_URL": str(settings.postgres)} if settings.postgres else {}

    async def run(*words: str, endpoint: str = object_server.endpoint) -> CompletedProcess[str]:
        return await asyncio.to_thread(
            workspaced,
            *("blobs", "copy", *words, "--data", str(settings.data)),
            environment=blob_environment(endpoint, tmp_path) | database,
        )

    return run


@asynccontextmanager
async def _host(
    settings: WorkspacedSettings, key: str, *, clock: ManualClock | None = None, workspace: str = ""
) -> AsyncIterator[tuple[CloudFiles, Application]]:
    async with running(settings, clock=clock) as app, api_client(app, key) as http:
        workspace = workspace or (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        yield CloudFiles(http=http, workspace=workspace), app


@pytest.mark.both_databases
async def test_any_host_serves_and_converts_what_another_received(
    with_bucket: WorkspacedSettings, make_key: MakeKey, object_server: ObjectServer
) -> None:
    # contract P8
    elsewhere = dataclasses.replace(with_bucket, data=with_bucket.data.with_name("other"))
    if with_bucket.postgres is None:  # hosts on one SQLite file share the folder, too
        elsewhere = with_bucket
    key = make_key()
    async with _host(with_bucket, key) as (one, _), _host(elsewhere, key, workspace=one.workspace) as (other, _):
        file = await one.upload("large.bin", _LARGE)
        assert await other.content(file["id"]) == _LARGE
        start = PART_BYTES - 3
        part = await other.http.get(f"{FILES}/download/{file['id']}", headers={"Range": f"bytes={start}-{start + 9}"})
        assert (part.status_code, part.content) == (206, _LARGE[start : start + 10])
        link = await other.link("by-link.bin")
        assert (await one.http.put(link["uploadUrl"], content=b"by link")).status_code == 200
        assert (await other.http.post(f"{FILES}/upload-complete/{link['id']}")).status_code == 200
        assert await one.content(link["id"]) == b"by link"
        table = await one.upload("masses.csv", _CSV)
        assert (await other.conversion(table["id"]))["state"] == "succeeded"
        assert b"00417" in await other.content(table["id"], output="preview.json")
        assert (await other.http.post(f"{FILES}/retry-conversion/{table['id']}")).is_success
        assert (await one.conversion(table["id"], attempt=2))["state"] == "succeeded"
        again = await other.upload("again.bin", _LARGE)
        assert again["sha256"] == hashlib.sha256(_LARGE).hexdigest()
    names = {path.rpartition("/")[0] for path in object_server.paths("files/x") if IDENTITY not in path}
    digests = [re.sub(r"[/.]", "", name.removeprefix("files/x/"))[:64] for name in names]
    assert digests.count(again["sha256"]) == 1, "equal bytes are stored once"
    for folder in (with_bucket.blob_folder, elsewhere.blob_folder):
        assert [path.name for path in folder.rglob("*")] == ["incoming"]


async def test_bytes_in_a_bucket_that_nothing_refers_to_are_deleted(
    with_bucket: WorkspacedSettings, make_key: MakeKey, object_server: ObjectServer
) -> None:
    clock = ManualClock()
    await clock.advance(-2 * 86_400)  # the link has expired when the sweep comes
    async with _host(with_bucket, make_key(), clock=clock) as (files, app):
        await app.run_maintenance()  # the first run of the job is over then
        kept = await files.upload("kept.bin", b"kept")
        link = await files.link()
        assert (await files.http.put(link["uploadUrl"], content=_LARGE)).status_code == 200
        assert len(object_server.paths("files/x")) == 4
        for _ in range(2):
            await app.run_maintenance()
            await clock.advance(GRACE_MS / 1_000)
        await app.run_maintenance()
        assert len(object_server.paths("files/x")) == 2
        assert await files.content(kept["id"]) == b"kept"


@pytest.mark.both_databases
async def test_a_host_with_another_store_does_not_start_and_says_which(
    with_bucket: WorkspacedSettings,
    settings: WorkspacedSettings,
    make_key: MakeKey,
    object_server: ObjectServer,
    tmp_path: Path,
) -> None:
    key = make_key()
    async with _host(with_bucket, key) as (files, _):
        await files.upload()
    elsewhere = dataclasses.replace(with_bucket, bucket=object_server.bucket_address(tmp_path, "files/y"))
    for other, shown in ((settings, str(settings.blob_folder)), (elsewhere, "s3://bench/files/y")):
        with pytest.raises(StorageUnusable, match=f"{shown} is not the store of this database's files.* no identity"):
            async with running(other):
                pytest.fail("it started")
    assert not (settings.blob_folder / IDENTITY).exists()
    async with running(with_bucket):
        pass


async def test_a_new_database_does_not_take_the_store_of_another_one(
    with_bucket: WorkspacedSettings, make_key: MakeKey
) -> None:
    make_key()
    async with running(with_bucket):
        pass
    new = dataclasses.replace(with_bucket, data=with_bucket.data.with_name("new"))
    with pytest.raises(StorageUnusable, match="s3://bench/files/x has the files of another database"):
        async with running(new):
            pytest.fail("it started")


@pytest.mark.both_databases
async def test_several_hosts_may_start_for_the_first_time_at_once(
    with_bucket: WorkspacedSettings, make_key: MakeKey
) -> None:
    key = make_key()

    async def start() -> int:
        async with running(with_bucket) as app, api_client(app, key) as http:
            async with asyncio.timeout(60):
                while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110  a caller gets no signal
                    await asyncio.sleep(0.05)
            return (await http.get("/v1/workspace")).status_code

    assert set(await asyncio.gather(*(start() for _ in range(3)))) == {200}


@pytest.mark.parametrize("write", [1, 2])
async def test_a_first_start_that_was_interrupted_is_continued(
    with_bucket: WorkspacedSettings, through_gate: WorkspacedSettings, gate: BucketGate, make_key: MakeKey, write: int
) -> None:
    """The host is killed before (1) or after (2) it wrote the identity into the bucket."""
    make_key()
    if write == 1:
        gate.before = lambda method, _path: (403, b"") if method == "PUT" else None
    else:
        gate.after = lambda method, _path: gate.requests.append("written") if method == "PUT" else None
        gate.before = lambda method, _path: (403, b"") if "written" in gate.requests and method == "GET" else None
    with pytest.raises(StorageUnusable, match="may not be used"):
        async with running(through_gate):
            pytest.fail("it started")
    async with running(with_bucket):
        pass


@pytest.mark.both_databases
async def test_files_move_from_the_folder_to_a_bucket_while_uploads_continue(
    settings: WorkspacedSettings, with_bucket: WorkspacedSettings, make_key: MakeKey, copy: Copy
) -> None:
    key = make_key()
    async with _host(settings, key) as (files, _):
        first = await files.upload("first.bin", _LARGE)
        done = await copy(_TARGET)
        assert (done.returncode, done.stdout) == (0, f"{_TARGET} has all bytes: 1 copied, 0 were there already.\n")
        second = await files.upload("second.bin", b"second")
        done = await copy(_TARGET, "--switch")
        assert done.returncode == 0, done.stderr
        assert "1 copied, 1 were there" in done.stdout
        params = {"workspaceId": files.workspace, "fileName": "late.bin"}
        late = await files.http.post(FILES, params=params, content=b"late")
        assert (late.status_code, late.json()["code"]) == (503, "blobs_moved")
        assert (await files.http.get("/readyz")).status_code == 503
    with pytest.raises(StorageUnusable, match="is not the store of this database's files"):
        async with running(settings):
            pytest.fail("it started")
    async with _host(with_bucket, key, workspace=files.workspace) as (moved, _):
        assert await moved.content(first["id"]) == _LARGE
        assert await moved.content(second["id"]) == b"second"
        third = await moved.upload("third.bin", b"third")
    back = await copy(str(settings.blob_folder), "--blobs", _TARGET, "--switch")
    assert back.returncode == 0, back.stderr
    async with _host(settings, key, workspace=files.workspace) as (returned, _):
        assert await returned.content(third["id"]) == b"third"


@pytest.mark.both_databases
async def test_an_interrupted_move_is_continued_by_the_same_command(
    settings: WorkspacedSettings, with_bucket: WorkspacedSettings, make_key: MakeKey, copy: Copy, gate: BucketGate
) -> None:
    key = make_key()
    contents = [f"content {number}".encode() for number in range(20)]
    async with _host(settings, key) as (files, _):
        ids = [(await files.upload(content=content))["id"] for content in contents]
    limit = 0

    def refuse_later(method: str, _path: str) -> tuple[int, bytes] | None:
        return (403, b"<Error><Code>AccessDenied</Code></Error>") if gate.requests.count("PUT") > limit else None

    gate.before = refuse_later
    codes: list[int] = []
    while 0 not in codes:
        limit += 4
        gate.requests.clear()
        codes.append((await copy(_TARGET, "--switch", endpoint=gate.endpoint)).returncode)
    assert len(codes) > 2
    assert set(codes[:-1]) == {69}
    async with _host(with_bucket, key, workspace=files.workspace) as (moved, _):
        assert [await moved.content(one) for one in ids] == contents


async def test_a_host_waits_while_a_move_ends(
    settings: WorkspacedSettings, with_bucket: WorkspacedSettings, make_key: MakeKey, copy: Copy, gate: BucketGate
) -> None:
    key = make_key()
    async with _host(settings, key) as (files, _):
        await files.upload()
    gate.before = lambda method, path: (500, b"") if method == "PUT" and path.endswith(IDENTITY) else None
    assert (await copy(_TARGET, "--switch", endpoint=gate.endpoint)).returncode == 69
    for one in (settings, with_bucket):
        async with running(one) as app, api_client(app, key) as http:
            assert (await http.get("/readyz")).status_code == 503
            assert (await http.get("/v1/workspace")).status_code == 503
    assert (await copy(_TARGET, "--switch")).returncode == 0
    async with running(with_bucket) as app, api_client(app, key) as http:
        assert (await http.get("/readyz")).status_code == 200


async def test_a_copy_reports_missing_and_damaged_bytes_and_does_not_switch(
    settings: WorkspacedSettings, make_key: MakeKey, copy: Copy
) -> None:
    key = make_key()
    async with _host(settings, key) as (files, _):
        for content in (b"whole", b"damaged", b"missing"):
            await files.upload(content=content)
    for path in settings.blob_folder.glob("??/*"):
        if path.read_bytes() == b"missing":
            path.unlink()
        elif path.read_bytes() == b"damaged":
            path.chmod(0o600)
            path.write_bytes(b"DAMAGED")
    refused = await copy(_TARGET, "--switch")
    assert refused.returncode == 78
    assert "lacks 2 of the bytes" in refused.stderr
    for content in (b"damaged", b"missing"):
        assert hashlib.sha256(content).hexdigest() in refused.stderr
    async with running(settings):
        pass


async def test_a_copy_refuses_the_store_of_another_database(
    settings: WorkspacedSettings, with_bucket: WorkspacedSettings, make_key: MakeKey, copy: Copy
) -> None:
    make_key()
    async with running(settings):
        pass
    async with running(dataclasses.replace(with_bucket, data=settings.data.with_name("another"))):
        pass
    refused = await copy(_TARGET, "--switch")
    assert (refused.returncode, "has the files of another database" in refused.stderr) == (78, True)
    same = await copy(str(settings.blob_folder))
    assert (same.returncode, "is the source itself" in same.stderr) == (2, True)


async def test_no_response_and_no_line_of_the_log_has_the_credentials(
    through_gate: WorkspacedSettings, gate: BucketGate, make_key: MakeKey, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = [repr(through_gate), str(through_gate.bucket)]
    async with _host(through_gate, make_key()) as (files, _):
        params = {"workspaceId": files.workspace, "fileName": "a.bin"}
        for status, body in (
            (403, b"<Error><Code>SignatureDoesNotMatch</Code><Message>s3cret-key test</Message></Error>"),
            (500, b"<Error><Code>InternalError</Code></Error>"),
            (404, b"<Error><Code>NoSuchBucket</Code></Error>"),
        ):
            gate.before = lambda method, _path, to=(status, body): to if method == "PUT" else None  # type: ignore[misc]
            response = await files.http.post(FILES, params=params, content=b"abc")
            texts.append(response.text)
            assert (response.status_code, response.json()["code"]) == (503, "storage_failed"), status
            assert "Retry-After" in response.headers
    shown = "\n".join([*texts, *capfd.readouterr()])
    assert "SignatureDoesNotMatch" in shown
    assert SECRET not in shown
    assert "AWS4-HMAC" not in shown
