"""A bucket that is silent, slow or absent, and its settings."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bucket_gate import bucket_gate
from tests.support.object_server import credentials_file
from tests.support.refusing_proxy import refusing_proxy
from workspaced.core.problems import UnavailableProblem
from workspaced.settings.environment import bucket_address
from workspaced.storage.blobs.address import BucketAddress, split_bucket
from workspaced.storage.blobs.bucket import PART_BYTES, Bucket
from workspaced.storage.blobs.factory import create_blob_store
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.port import new_name
from workspaced.storage.port import StorageUnusable

NAME = new_name(hashlib.sha256(b"abc").hexdigest())


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def _each_request(bucket: Bucket, file: Path) -> tuple[object, ...]:
    """Return the outcome of each operation, all at once."""

    async def read() -> list[bytes]:
        return [part async for part in bucket.read(NAME, start=0, length=3)]

    return await asyncio.gather(
        bucket.put(NAME, file),
        bucket.holds(NAME, 3),
        read(),
        bucket.delete([NAME]),
        bucket.identity(),
        bucket.set_identity("x"),
        return_exceptions=True,
    )


async def test_every_request_to_a_silent_store_ends_in_time_with_a_sentence(silent: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    address = BucketAddress(bucket="files", endpoint=silent, seconds=1, credentials=credentials_file(tmp_path))
    begun = time.monotonic()
    outcomes = await _each_request(Bucket(address), tmp_path / "file")
    assert time.monotonic() - begun < 20, "each has one second"
    for outcome in outcomes:
        assert isinstance(outcome, UnavailableProblem)
        assert (outcome.code, str(outcome)[:28]) == ("storage_failed", "The bucket that holds files ")


async def test_a_store_that_sends_a_response_too_slowly_ends_in_time(tmp_path: Path) -> None:
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(
                b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000\r\nContent-Range: bytes 0-999999/1000000\r\n\r\n"
            )
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,), daemon=True)
        dripping.start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        address = BucketAddress(bucket="files", endpoint=endpoint, seconds=1, credentials=credentials_file(tmp_path))
        with pytest.raises(UnavailableProblem):
            await anext(Bucket(address).read(NAME, start=0, length=1_000_000))
        ended.set()
        dripping.join(10)


async def test_an_absent_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    address = BucketAddress(bucket="files", endpoint=endpoint, seconds=10, credentials=credentials_file(tmp_path))
    for outcome in await _each_request(Bucket(address), tmp_path / "file"):
        assert isinstance(outcome, UnavailableProblem)
        assert "can't be used now" in str(outcome)


async def test_uploads_hold_a_few_parts_in_memory_only(tmp_path: Path) -> None:
    """However many uploads run, few objects are sent at once; the rest wait for their turns."""
    (tmp_path / "file").write_bytes(bytes(PART_BYTES + 1))
    fourth, fifth, goes_on = threading.Event(), threading.Event(), threading.Event()
    arrivals = itertools.count(1)

    def hold(_method: str, _path: str) -> tuple[int, bytes]:
        arrived = next(arrivals)
        if arrived >= 4:
            (fourth if arrived == 4 else fifth).set()
        assert goes_on.wait(30)
        return 200, b""

    with bucket_gate("http://127.0.0.1:9") as gate:
        gate.before = hold
        address = BucketAddress(bucket="files", endpoint=gate.endpoint, credentials=credentials_file(tmp_path))
        bucket = Bucket(address)
        names = [f"ab/{number:062d}.{0:016d}" for number in range(8)]
        uploads = asyncio.gather(*(bucket.put(name, tmp_path / "file") for name in names))
        assert await asyncio.to_thread(fourth.wait, 30)
        assert not await asyncio.to_thread(fifth.wait, 1)
        goes_on.set()
        await uploads
    assert next(arrivals) == 17, "each file has two objects"


async def test_credentials_are_read_again_from_their_file(tmp_path: Path) -> None:
    address = BucketAddress(bucket="files", endpoint="http://127.0.0.1:9", seconds=2, credentials=tmp_path / "absent")
    with pytest.raises(StorageUnusable, match=r"credentials .*absent can't be read \(No such file"):
        Bucket(address)
    (tmp_path / "absent").write_text("[default]\naws_access_key_id = hidden-id\n")
    with pytest.raises(StorageUnusable, match="is malformed") as failure:
        Bucket(address)
    assert "hidden-id" not in str(failure.value)
    path = credentials_file(tmp_path)
    bucket = Bucket(BucketAddress(bucket="files", endpoint="http://127.0.0.1:9", seconds=2, credentials=path))
    path.unlink()
    with pytest.raises(UnavailableProblem):
        await bucket.holds(NAME, 3)


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"endpoint": "https://store.invalid"}, "store.invalid:443"),
        ({"region": "eu-west-1"}, "s3.eu-west-1.amazonaws.com:443"),
        ({"region": "eu-west-1", "path_style": False}, "files.s3.eu-west-1.amazonaws.com:443"),
    ],
)
async def test_no_variable_of_aws_leads_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], host: str
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "https://elsewhere.invalid")
    with refusing_proxy(monkeypatch) as hosts:
        bucket = Bucket(BucketAddress(bucket="files", seconds=2, credentials=credentials_file(tmp_path), **settings))
        with pytest.raises(UnavailableProblem):
            await bucket.holds(NAME, 3)
    assert set(hosts) == {host}


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://files", ("files", "")),
        ("s3://files/", ("files", "")),
        ("s3://files/a/b_c/", ("files", "a/b_c")),
        ("s3://Old.Bucket_1/x", ("Old.Bucket_1", "x")),
    ],
)
def test_the_url_of_a_bucket_has_a_prefix_or_none(url: str, parts: tuple[str, str]) -> None:
    assert split_bucket(url) == parts
    assert str(BucketAddress(bucket=parts[0], prefix=parts[1])) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "files",
        "s3:files",
        "s3://",
        "s3://f",
        "s3://files/../x",
        "s3://files//x",
        "s3://files/a b",
        "s3://user:pw@files",
        "gs://files",
    ],
)
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must be like s3://bucket"):
        split_bucket(url)


def test_the_settings_of_a_bucket_are_variables() -> None:
    given = {
        "WORKSPACED_BLOBS_ENDPOINT": "https://s3.example.org:9000/",
        "WORKSPACED_BLOBS_REGION": "eu-central-1",
        "WORKSPACED_BLOBS_PATH_STYLE": "false",
        "WORKSPACED_BLOBS_CREDENTIALS": "/etc/workspaced/s3",
        "WORKSPACED_BLOBS_SECONDS": "7",
    }
    address = bucket_address("s3://files/x", given)
    assert address == BucketAddress(
        bucket="files",
        prefix="x",
        endpoint="https://s3.example.org:9000",
        region="eu-central-1",
        path_style=False,
        credentials=Path("/etc/workspaced/s3"),
        seconds=7,
    )
    assert address.requested_endpoint == "https://files.s3.example.org:9000"
    for name, wrong in (("ENDPOINT", "https://key:secret@host"), ("PATH_STYLE", "yes"), ("SECONDS", "0")):
        with pytest.raises(ValueError, match=f"WORKSPACED_BLOBS_{name}") as failure:
            bucket_address("s3://files/x", {f"WORKSPACED_BLOBS_{name}": wrong})
        assert "secret" not in str(failure.value)


def test_a_bucket_without_its_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    monkeypatch.delitem(__import__("sys").modules, "workspaced.storage.blobs.bucket", raising=False)
    with pytest.raises(StorageUnusable, match=r"pip install 'ingestd\[objects\]'"):
        create_blob_store(BucketAddress(bucket="files"), FileThreads(1))
