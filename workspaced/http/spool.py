"""The bytes of a response that were read but not sent yet: about a megabyte in memory, further bytes in unnamed files.

The database is read as fast as possible, whatever the speed of the client. So a slow client uses disk space, but no
connection and no transaction of the database.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import structlog

from workspaced.core.problems import UnavailableProblem

T = TypeVar("T")
MEMORY_BYTES: Final = 1_048_576
_SEGMENT_BYTES: Final = 16_777_216
_PIECE_BYTES: Final = 262_144
_CALLER_SHARES: Final = 4
# The total time for which the reader of a response waits for a fast client before it uses the disk.
_CLIENT_WAIT_SECONDS: Final = 5.0
_ROOM_SECONDS: Final = 30.0


class SpoolRoom:
    """Spool space in files below ``folder``: ``most`` bytes in total, and a quarter of this for one caller."""

    def __init__(self, folder: Path, *, most: int) -> None:
        self.folder = folder
        self._most = most
        self._used: Counter[str] = Counter()
        self._freed = asyncio.Event()

    @property
    def used(self) -> int:
        """Return how many bytes are in use."""
        return self._used.total()

    async def take(self, caller: str, size: int, *, is_contended: Callable[[], bool]) -> None:
        """Wait until there is room for ``size`` bytes, then reserve them.

        Raises:
            UnavailableProblem: there was no room for 30 seconds, and other responses waited to begin (``is_contended``).
        """
        while True:
            used = self._used[caller]
            if not used or (used + size <= self._most // _CALLER_SHARES and self.used + size <= self._most):
                self._used[caller] = used + size
                return
            self._freed.clear()
            try:
                async with asyncio.timeout(_ROOM_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                if is_contended():
                    sentence = "The response was read too slowly while other responses waited."
                    raise UnavailableProblem("response_cut", sentence) from None

    def release(self, caller: str, size: int) -> None:
        """Release reserved bytes."""
        self._used[caller] -= size
        if not self._used[caller]:
            del self._used[caller]
        self._freed.set()


class _Segment:
    """An unnamed file that is written at its end and read from its beginning."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  closed by its owner
        self.size = 0
        self.read_bytes = 0
        self.is_busy = False

    def write(self, part: bytes) -> None:
        """Append bytes; blocks."""
        view, end = memoryview(part), self.size
        while view:
            written = os.pwrite(self._file.fileno(), view, end)
            view, end = view[written:], end + written

    def read(self) -> bytes:
        """Return the next bytes; blocks."""
        return os.pread(self._file.fileno(), min(_PIECE_BYTES, self.size - self.read_bytes), self.read_bytes)

    def close(self) -> None:
        """Release the disk space."""
        self._file.close()


_Chunk: TypeAlias = bytes | _Segment


class _Spool:
    """The bytes of one response, first in, first out; one task puts, another takes."""

    def __init__(self, room: SpoolRoom, caller: str, *, is_contended: Callable[[], bool]) -> None:
        self._room = room
        self._caller = caller
        self._is_contended = is_contended
        self._items: deque[_Chunk] = deque()
        self._reserved: dict[_Segment, int] = {}
        self._memory = 0
        self._wait_left = _CLIENT_WAIT_SECONDS
        self._ended = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    async def put(self, part: bytes) -> None:
        """Append bytes.

        Raises:
            UnavailableProblem: there is no room for the bytes, and other responses wait.
        """
        await self._wait_for_memory()
        last = self._items[-1] if self._items else None
        if not isinstance(last, _Segment) and self._memory < MEMORY_BYTES:
            self._keep(part)
            return
        await self._room.take(self._caller, len(part), is_contended=self._is_contended)
        try:
            await self._append(part)
        except OSError as error:
            structlog.get_logger().warning("spool_not_written", reason=error.strerror, folder=str(self._room.folder))
            while self._items:  # without disk space, reading waits for the client
                self._drained.clear()
                await self._drained.wait()
            self._keep(part)

    async def _append(self, part: bytes) -> None:
        """Write bytes, for which there is room, to the last file. Raises OSError: the file can't be created or written."""
        last = self._items[-1] if self._items else None  # the segment may have been read to its end meanwhile
        if not isinstance(last, _Segment) or last.size >= _SEGMENT_BYTES:
            try:
                last = _Segment(self._room.folder)
            except OSError:
                self._room.release(self._caller, len(part))
                raise
            self._items.append(last)
        self._reserved[last] = self._reserved.get(last, 0) + len(part)
        last.is_busy = True
        try:
            await _on_thread(partial(last.write, part))
            last.size += len(part)
        finally:
            last.is_busy = False
            self._filled.set()

    def _keep(self, part: bytes) -> None:
        self._items.append(part)
        self._memory += len(part)
        self._filled.set()

    def end(self) -> None:
        """Mark the end of the bytes."""
        self._ended = True
        self._filled.set()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield all bytes in order, until the end."""
        while True:
            head = self._items[0] if self._items else None
            if isinstance(head, bytes):
                self._items.popleft()
                self._memory -= len(head)
                self._drained.set()
                yield head
            elif head is not None and head.read_bytes < head.size:
                part = await _on_thread(head.read)
                head.read_bytes += len(part)
                yield part
            elif head is not None and not head.is_busy:
                self._items.popleft()
                self._close(head)
            elif self._ended:
                return
            else:
                self._filled.clear()
                await self._filled.wait()

    def close(self) -> None:
        """Release all spool space. Call this method after both tasks have ended."""
        for item in self._items:
            if isinstance(item, _Segment):
                self._close(item)
        self._items.clear()

    async def _wait_for_memory(self) -> None:
        """Wait for a client that reads fast, for `_CLIENT_WAIT_SECONDS` in total."""
        loop = asyncio.get_running_loop()
        while self._memory >= MEMORY_BYTES and self._wait_left > 0 and isinstance(self._items[-1], bytes):
            begun = loop.time()
            self._drained.clear()
            try:
                async with asyncio.timeout(self._wait_left):
                    await self._drained.wait()
            except TimeoutError:
                self._wait_left = 0
            else:
                self._wait_left -= loop.time() - begun

    def _close(self, segment: _Segment) -> None:
        segment.close()
        self._drained.set()
        self._room.release(self._caller, self._reserved.pop(segment))


async def spooled(
    parts: AsyncGenerator[bytes, None], room: SpoolRoom, caller: str, *, is_contended: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of ``parts``, which is read ahead to its end. Bytes wait in memory, and above a megabyte in ``room``.

    Raises:
        UnavailableProblem: the caller reads so slowly that there is no room, while other responses wait (``is_contended``).
    """
    spool = _Spool(room, caller, is_contended=is_contended)
    filling = asyncio.create_task(_fill(parts, spool))
    try:
        async with aclosing(spool.parts()) as waiting:
            async for part in waiting:
                yield part
        await filling
    finally:
        filling.cancel()
        await asyncio.wait([filling])
        spool.close()


async def _fill(parts: AsyncGenerator[bytes, None], spool: _Spool) -> None:
    try:
        async with aclosing(parts):
            async for part in parts:
                for start in range(0, len(part), _PIECE_BYTES):
                    await spool.put(part[start : start + _PIECE_BYTES])
    finally:
        spool.end()


async def _on_thread(work: Callable[[], T]) -> T:
    """Run a function on a thread, and wait for its end even if cancelled, so that no file is closed while in use."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
