"""Bytes that a host receives or converts, in a folder of its disk, before they are stored.

A writer locks its file or its scratch folder; the kernel releases the lock when the process ends. So an entry without a lock
was left by a dead process. While a writer creates and locks its entry, it holds a shared lock on the whole folder.
`drop_abandoned` takes this lock exclusively.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from workspaced.storage.blobs.file_threads import FileThreads, disk_problems
from workspaced.storage.disk import make_private_folder
from workspaced.storage.port import StorageUnusable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITE_BYTES = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Bytes that were received, but are not stored under a name yet."""

    sha256: str
    size: int
    path: Path


class IncomingFolder:
    """The folder of received bytes, as one process uses it. Several processes may use the folder at once."""

    def __init__(self, folder: Path, threads: FileThreads) -> None:
        self._folder = folder
        self._threads = threads

    async def start(self) -> None:
        """Create the folder.

        Raises:
            StorageUnusable: the folder can't be created.
        """
        try:
            await self._threads.run(make_private_folder, self._folder)
        except OSError as error:
            raise StorageUnusable(
                f"The folder {self._folder.parent} can't be used ({error.strerror or error}). "
                "Give a folder that this user may write to."
            ) from error

    @asynccontextmanager
    async def receive(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[Incoming, None]:
        """Receive bytes in a file, which is deleted when the context ends, unless it was moved.

        The bytes are hashed and written on threads, a megabyte at a time.

        Raises:
            UnavailableProblem: the disk is full or fails; no file remains.
        """
        path = self._folder / uuid.uuid4().hex
        with disk_problems():
            file = await self._threads.acquire(_create, path, release=lambda file: _drop(file, path))
        try:
            digest = hashlib.sha256()
            size = 0
            async for part in _gathered(parts):
                size += len(part)
                with disk_problems():
                    await self._threads.run(_append, file, digest.update, part)
            yield Incoming(sha256=digest.hexdigest(), size=size, path=path)
        finally:
            await self._threads.finish(_drop, file, path)

    @asynccontextmanager
    async def scratch(self) -> AsyncGenerator[Path, None]:
        """Create an empty folder that exists until the context ends."""
        folder = self._folder / uuid.uuid4().hex
        with disk_problems():
            descriptor = await self._threads.acquire(
                _create_folder, folder, release=lambda opened: _drop_folder(opened, folder)
            )
        try:
            yield folder
        finally:
            await self._threads.finish(_drop_folder, descriptor, folder)

    async def drop_abandoned(self) -> int:
        """Delete files and folders that killed processes left; return their number."""
        with disk_problems():
            return await self._threads.run(_drop_abandoned, self._folder)


async def _gathered(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of ``parts`` in pieces of about `_WRITE_BYTES`."""
    waiting: list[bytes] = []
    length = 0
    async for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= _WRITE_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            length = 0
    if waiting:
        yield b"".join(waiting)


def _create(path: Path) -> BinaryIO:
    with _holding(path.parent, fcntl.LOCK_SH):
        file = path.open("xb", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
    path.chmod(0o400)
    return file


def _create_folder(folder: Path) -> int:
    """Return a descriptor that holds the new folder's lock."""
    with _holding(folder.parent, fcntl.LOCK_SH):
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder, _DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _drop_folder(descriptor: int, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


@contextmanager
def _holding(folder: Path, kind: int) -> Iterator[None]:
    descriptor = os.open(folder, _DIRECTORY)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _append(file: BinaryIO, note: Callable[[bytes], None], part: bytes) -> None:
    note(part)
    view = memoryview(part)
    while view:
        view = view[file.write(view) :]


def _drop(file: BinaryIO, path: Path) -> None:
    file.close()
    path.unlink(missing_ok=True)


def _drop_abandoned(incoming: Path) -> int:
    dropped = 0
    with _holding(incoming, fcntl.LOCK_EX):
        for entry in incoming.iterdir():
            with suppress(FileNotFoundError, BlockingIOError):  # deleted meanwhile, or in use
                dropped += _drop_if_abandoned(entry)
    return dropped


def _drop_if_abandoned(entry: Path) -> int:
    descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    finally:
        os.close(descriptor)
    return 1
