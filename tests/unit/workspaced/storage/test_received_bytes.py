"""Bytes that arrive on the disk of a host, and bytes that are read from its folder."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.folder import BlobFolder
from workspaced.storage.blobs.port import new_name
from workspaced.storage.blobs.received_bytes import IncomingFolder


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
async def threads() -> AsyncIterator[FileThreads]:
    threads = FileThreads(2)
    yield threads
    await threads.stop()


@pytest.fixture
async def incoming(tmp_path: Path, threads: FileThreads) -> IncomingFolder:
    incoming = IncomingFolder(tmp_path / "blobs" / "incoming", threads)
    await incoming.start()
    return incoming


async def test_only_what_a_killed_process_left_is_deleted(incoming: IncomingFolder, tmp_path: Path) -> None:
    folder = tmp_path / "blobs" / "incoming"
    (folder / "left").write_bytes(b"half")
    (folder / "folder").mkdir()
    (folder / "folder" / "made").write_bytes(b"half")
    async with incoming.receive(_parts(b"ab", b"c")) as mine, incoming.scratch() as scratch:
        (scratch / "0").write_bytes(b"x")
        assert await incoming.drop_abandoned() == 2
        assert set(folder.iterdir()) == {mine.path, scratch}
        assert mine.path.read_bytes() == b"abc"
    assert list(folder.iterdir()) == []


async def test_an_unwritable_folder_is_reported(incoming: IncomingFolder, tmp_path: Path) -> None:
    (tmp_path / "blobs" / "incoming").rmdir()
    (tmp_path / "blobs" / "incoming").write_bytes(b"a file in its place")
    with pytest.raises(UnavailableProblem, match="can't be used"):
        async with incoming.receive(_parts(b"abc")):
            pytest.fail("there is no place for it")


async def test_a_client_that_disconnects_leaves_no_open_file(
    incoming: IncomingFolder, threads: FileThreads, tmp_path: Path
) -> None:
    content = os.urandom(1_000_000)
    folder = BlobFolder(tmp_path / "blobs", threads)
    async with incoming.receive(_parts(content)) as received:
        await folder.put(name := new_name(received.sha256), received.path)
    before = _open_files()
    parts = folder.read(name, start=10, length=999_990)
    assert (await anext(parts))[:10] == content[10:20]
    await parts.aclose()
    assert _open_files() == before
