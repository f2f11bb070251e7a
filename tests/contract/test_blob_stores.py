"""A folder and a bucket of an S3 server store bytes alike."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.support.object_server import BUCKET, ObjectServer
from workspaced.storage.blobs.bucket import PART_BYTES, Bucket
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.folder import BlobFolder
from workspaced.storage.blobs.port import BlobStore, new_name

_PREFIXES = itertools.count(1)


@pytest.fixture(params=["folder", "bucket"])
async def blob_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    threads = FileThreads(2)
    if request.param == "folder":
        (tmp_path / "blobs").mkdir()
        yield BlobFolder(tmp_path / "blobs", threads)
    else:
        server: ObjectServer = request.getfixturevalue("object_server")
        yield Bucket(server.bucket_address(tmp_path, f"files/{next(_PREFIXES)}"))
    await threads.stop()


def _file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / f"incoming-{next(_PREFIXES)}"
    path.write_bytes(content)
    return path


def _name(content: bytes) -> str:
    return new_name(hashlib.sha256(content).hexdigest())


async def _read(blob_store: BlobStore, name: str, start: int, length: int) -> bytes:
    async with aclosing(blob_store.read(name, start=start, length=length)) as parts:
        return b"".join([part async for part in parts])


@pytest.mark.parametrize("size", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES])
async def test_bytes_of_any_size_are_read_as_they_were_put(blob_store: BlobStore, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    name = _name(content)
    assert not await blob_store.holds(name, size)
    await blob_store.put(name, _file(tmp_path, content))
    assert await blob_store.holds(name, size)
    assert await _read(blob_store, name, 0, size) == content


async def test_any_range_can_be_read_in_pieces_of_a_megabyte_at_most(blob_store: BlobStore, tmp_path: Path) -> None:
    content = os.urandom(PART_BYTES + 1_500_000)
    name = _name(content)
    await blob_store.put(name, _file(tmp_path, content))
    for start, length in (
        (0, 1),
        (3, 5),
        (PART_BYTES - 2, 4),
        (PART_BYTES, 7),
        (1_000_000, PART_BYTES),
        (len(content) - 1, 1),
    ):
        async with aclosing(blob_store.read(name, start=start, length=length)) as parts:
            found = [part async for part in parts]
        assert b"".join(found) == content[start : start + length], (start, length)
        assert max(map(len, found)) <= 1_048_576


async def test_incomplete_bytes_are_not_held_and_are_replaced(blob_store: BlobStore, tmp_path: Path) -> None:
    content = os.urandom(PART_BYTES + 10)
    name = _name(content)
    await blob_store.put(name, _file(tmp_path, content[:PART_BYTES]))  # where a process was killed
    assert not await blob_store.holds(name, len(content))
    await blob_store.put(name, _file(tmp_path, content))
    assert await blob_store.holds(name, len(content))
    assert await _read(blob_store, name, 0, len(content)) == content


async def test_deleted_bytes_are_gone_and_others_stay(blob_store: BlobStore, tmp_path: Path) -> None:
    content = os.urandom(PART_BYTES + 10)
    names = [_name(content) for _ in range(3)]  # equal bytes with names of their own
    for name in names:
        await blob_store.put(name, _file(tmp_path, content))
    await blob_store.delete([names[0], names[2], _name(b"never put")])
    assert [await blob_store.holds(name, len(content)) for name in names] == [False, True, False]
    with pytest.raises(FileNotFoundError):
        await _read(blob_store, names[0], 0, 1)
    assert await _read(blob_store, names[1], PART_BYTES - 1, 11) == content[PART_BYTES - 1 :]
    await blob_store.delete(names)


async def test_a_store_remembers_its_identity(blob_store: BlobStore) -> None:
    assert await blob_store.identity() is None
    for text in ("one", "two"):
        await blob_store.set_identity(text)
        assert await blob_store.identity() == text


async def test_only_a_store_of_files_has_paths(blob_store: BlobStore, tmp_path: Path) -> None:
    name = _name(b"abc")
    await blob_store.put(name, _file(tmp_path, b"abc"))
    path = blob_store.local_path(name)
    assert path is None if isinstance(blob_store, Bucket) else path is not None and path.read_bytes() == b"abc"
    assert BUCKET in blob_store.shown or str(tmp_path) in blob_store.shown
