"""Bytes in a folder of one host: a file ``ab/cdef….id`` for each name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs.file_threads import FileThreads, disk_problems
from workspaced.storage.blobs.port import IDENTITY, BlobStore
from workspaced.storage.disk import flush

_READ_BYTES = 262_144


class BlobFolder(BlobStore):
    """A folder as a blob store. Files for `put` must be on the same file system, because they are moved."""

    def __init__(self, folder: Path, threads: FileThreads) -> None:
        self._folder = folder
        self._threads = threads

    @property
    def shown(self) -> str:
        """See `BlobStore.shown`."""
        return str(self._folder)

    async def prepare(self, source: Path) -> None:
        """See `BlobStore.prepare`."""
        with disk_problems():
            await self._threads.run(flush, source)

    async def put(self, name: str, source: Path) -> None:
        """See `BlobStore.put`. The file is moved."""
        with disk_problems():
            await self._threads.run(_place, source, self._folder / name)

    async def holds(self, name: str, size: int) -> bool:
        """See `BlobStore.holds`."""
        with disk_problems():
            try:
                return (await self._threads.run((self._folder / name).stat)).st_size == size
            except FileNotFoundError:
                return False

    async def read(self, name: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """See `BlobStore.read`."""
        with disk_problems(passes=(FileNotFoundError,)):
            file = await self._threads.acquire(_open, self._folder / name, release=lambda file: file.close())
        try:
            left = length
            await self._threads.run(file.seek, start)
            while left > 0:
                with disk_problems():
                    part = await self._threads.run(file.read, min(left, _READ_BYTES))
                if not part:
                    raise UnavailableProblem(
                        "storage_failed", "The stored file has fewer bytes than were written.", retry_seconds=60
                    )
                left -= len(part)
                yield part
        finally:
            await self._threads.finish(file.close)

    def local_path(self, name: str) -> Path | None:
        """See `BlobStore.local_path`."""
        return self._folder / name

    async def delete(self, names: Sequence[str]) -> None:
        """See `BlobStore.delete`."""
        for name in names:
            with disk_problems():
                await self._threads.run((self._folder / name).unlink, missing_ok=True)

    async def identity(self) -> str | None:
        """See `BlobStore.identity`."""
        with disk_problems():
            try:
                return await self._threads.run((self._folder / IDENTITY).read_text, encoding="utf-8")
            except FileNotFoundError:
                return None

    async def set_identity(self, text: str) -> None:
        """See `BlobStore.set_identity`."""
        with disk_problems():
            await self._threads.run(_write_identity, self._folder, text)


def _open(path: Path) -> BinaryIO:
    return path.open("rb", buffering=0)


def _place(source: Path, address: Path) -> None:
    with suppress(FileExistsError):
        address.parent.mkdir(mode=0o700)
        flush(address.parent.parent)
    source.replace(address)
    flush(address.parent)


def _write_identity(folder: Path, text: str) -> None:
    unfinished = folder / f".{IDENTITY}"
    unfinished.write_text(text, encoding="utf-8")
    flush(unfinished)
    unfinished.replace(folder / IDENTITY)
    flush(folder)
