"""The bytes of files in a folder: ``ab/cdef…`` for the digest ``abcdef…``, ``incoming`` for uploads.

Bytes are identified by their SHA-256 (64 lower-case hexadecimal digits); equal bytes are stored once. The database has the
references to them. Only `Blobs.sweep` deletes bytes, and only those without a reference.

File locks protect bytes in use from the sweep; the kernel releases them when a process ends.
- A writer locks its file, or its scratch folder, in ``incoming``. An entry there without a lock was left by a dead process.
- A writer holds a shared lock on ``incoming`` while it creates and locks its entry; the sweep takes an exclusive one.
- A writer that will refer to bytes holds a shared lock on their folder ``ab`` from before it moves them there until its commit.
  The sweep holds an exclusive lock from its query for references until the deletion.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import functools
import hashlib
import os
import shutil
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeAlias, TypeVar

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.disk import flush

P = ParamSpec("P")
T = TypeVar("T")
Referenced: TypeAlias = Callable[[Sequence[str]], Awaitable[frozenset[str]]]
"""Return those of the digests that committed rows refer to."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITE_BYTES = 1_048_576
_READ_BYTES = 262_144
_ASKED_AT_ONCE = 500
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Bytes that were received and survive a loss of power, but are not published at their address yet."""

    sha256: str
    size: int
    path: Path


class Blobs:
    """The bytes as one process uses them; several processes may use them at once. Start it once; stop it once."""

    def __init__(self, folder: Path, *, threads: int = 8) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="blobs")

    async def start(self) -> None:
        """Create the folder. Raises OSError: it can't be created."""
        await self._do(self._incoming.mkdir, mode=0o700, parents=True, exist_ok=True)

    async def stop(self) -> None:
        """Wait for reads and writes in progress."""
        await asyncio.to_thread(self._threads.shutdown)

    @asynccontextmanager
    async def receive(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[Incoming, None]:
        """Receive bytes. Bytes that were not `kept` are deleted at the end of the block.

        They are hashed and written on threads, a megabyte at a time.

        Raises:
            UnavailableProblem: the disk is full or fails; nothing remains.
        """
        path = self._incoming / uuid.uuid4().hex
        with _as_problem():
            file = await self._acquire(_create, path, release=lambda file: _drop(file, path))
        try:
            digest = hashlib.sha256()
            size = 0
            async for part in _gathered(parts):
                size += len(part)
                with _as_problem():
                    await self._do(_append, file, digest.update, part)
            with _as_problem():
                await self._do(os.fsync, file.fileno())
            yield Incoming(sha256=digest.hexdigest(), size=size, path=path)
        finally:
            await self._finally(_drop, file, path)

    @asynccontextmanager
    async def kept(self, *incoming: Incoming) -> AsyncGenerator[None, None]:
        """Publish the bytes at their addresses, durably, and protect them from sweeps during the block.

        The block commits the reference to them; if it does not, a later sweep deletes them.

        Raises:
            UnavailableProblem: the disk is full or fails.
        """
        async with AsyncExitStack() as held:
            for shard in sorted({self._shard(one.sha256) for one in incoming}):
                with _as_problem():
                    await self._do(_make_shard, shard)
                    await held.enter_async_context(_locked(shard, fcntl.LOCK_SH))
            with _as_problem():
                for one in incoming:
                    await self._do(_place, one.path, self.as_file(one.sha256))
            yield

    async def read(self, sha256: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield ``length`` bytes from ``start`` on, in pieces.

        Raises:
            UnavailableProblem: the bytes are missing or unreadable, although the database refers to them.
        """
        try:
            with _as_problem():
                file = await self._acquire(_open, self.as_file(sha256), release=lambda file: file.close())
        except FileNotFoundError as error:
            raise UnavailableProblem(
                "bytes_missing", "The stored bytes of this file are missing.", retry_seconds=60
            ) from error
        try:
            left = length
            await self._do(file.seek, start)
            while left > 0:
                with _as_problem():
                    part = await self._do(file.read, min(left, _READ_BYTES))
                if not part:
                    raise UnavailableProblem(
                        "storage_failed", "The stored file has fewer bytes than were written.", retry_seconds=60
                    )
                left -= len(part)
                yield part
        finally:
            await self._finally(file.close)

    def as_file(self, sha256: str) -> Path:
        """Return a read-only file with these bytes."""
        return self._shard(sha256) / sha256[2:]

    @asynccontextmanager
    async def scratch(self) -> AsyncGenerator[Path, None]:
        """Create an empty folder that exists during the block; the sweep deletes those of killed processes."""
        folder = self._incoming / uuid.uuid4().hex
        with _as_problem():
            descriptor = await self._acquire(
                _create_folder, folder, release=lambda opened: _drop_folder(opened, folder)
            )
        try:
            yield folder
        finally:
            await self._finally(_drop_folder, descriptor, folder)

    async def sweep(self, referenced: Referenced) -> int:
        """Delete bytes without a reference, and what killed processes left; return how many items were deleted."""
        with _as_problem():
            dropped = await self._do(_drop_abandoned, self._incoming)
            for shard in await self._do(_shards, self._folder):
                if await self._unreferenced(shard, referenced):
                    async with _locked(shard, fcntl.LOCK_EX):
                        # queried again: a reference may have been added since; the lock excludes further ones
                        for sha256 in await self._unreferenced(shard, referenced):
                            await self._do(self.as_file(sha256).unlink, missing_ok=True)
                            dropped += 1
        return dropped

    async def _unreferenced(self, shard: Path, referenced: Referenced) -> list[str]:
        listed = [f"{shard.name}{name}" for name in await self._do(os.listdir, shard)]
        names = [name for name in listed if _is_name(name)]  # a file of another program stays
        found: list[str] = []
        for start in range(0, len(names), _ASKED_AT_ONCE):
            asked = names[start : start + _ASKED_AT_ONCE]
            held = await referenced(asked)
            found.extend(name for name in asked if name not in held)
        return found

    def _shard(self, sha256: str) -> Path:
        if not _is_name(sha256):
            raise ValueError("a blob's name is the 64 hexadecimal digits of a SHA-256")
        return self._folder / sha256[:2]

    async def _finally(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run like `_do`, to its end even if the caller is cancelled."""
        await asyncio.shield(asyncio.ensure_future(self._do(work, *args, **kwargs)))

    async def _acquire(self, work: Callable[[Path], T], path: Path, *, release: Callable[[T], object]) -> T:
        """Open on a thread, like `_do`; release what was opened if the caller is cancelled meanwhile."""
        return await acquired(asyncio.get_running_loop().run_in_executor(self._threads, work, path), release)

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run on a thread, and wait for its end even if cancelled, so that no file is closed while in use."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(work, *args, **kwargs))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise


async def acquired(opening: asyncio.Future[T], release: Callable[[T], object]) -> T:
    """Return what a thread opens. If the caller is cancelled meanwhile, wait for it and release it."""
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait([opening])
        if opening.exception() is None:
            release(opening.result())
        raise


def _is_name(sha256: str) -> bool:
    return len(sha256) == 64 and _HEX.issuperset(sha256)


async def _gathered(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the same bytes in pieces of about `_WRITE_BYTES`."""
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


@asynccontextmanager
async def _locked(folder: Path, kind: int) -> AsyncGenerator[None, None]:
    """Hold a folder's lock. Waits on asyncio's default threads, because this class's threads run the lock's holder."""
    descriptor = os.open(folder, _DIRECTORY)
    waiting = asyncio.get_running_loop().run_in_executor(None, fcntl.flock, descriptor, kind)
    try:
        await asyncio.shield(waiting)
        yield
    finally:
        if waiting.done():
            os.close(descriptor)
        else:  # cancelled while waiting: a descriptor must not be closed while a thread waits with it
            waiting.add_done_callback(lambda _: os.close(descriptor))


@contextmanager
def _as_problem() -> Iterator[None]:
    """Raise UnavailableProblem for an error of the disk; a missing file stays a FileNotFoundError."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise UnavailableProblem("storage_full", "The disk that holds files is full.", retry_seconds=30) from error
        if isinstance(error, FileNotFoundError):
            raise
        raise UnavailableProblem(
            "storage_failed", f"The folder that holds files can't be used ({error.strerror}).", retry_seconds=5
        ) from error


def _open(path: Path) -> BinaryIO:
    return path.open("rb", buffering=0)


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


def _make_shard(shard: Path) -> None:
    with suppress(FileExistsError):
        shard.mkdir(mode=0o700)
        flush(shard.parent)


def _place(path: Path, address: Path) -> None:
    """Move a file to its address, unless equal bytes are there already."""
    if not address.exists():
        path.replace(address)
        flush(address.parent)


def _shards(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if len(entry.name) == 2 and _HEX.issuperset(entry.name))


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
