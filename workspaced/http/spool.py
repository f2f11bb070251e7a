"""What was read for an answer and is not sent yet: a little in memory, the rest in files without a name.

The database is read as fast as it can be, whatever the speed of the client; so a slow client holds space on the disk, and
neither a connection of the database nor a transaction.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
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
# How long the reading of one answer waits, in all, for a client that reads quickly, before it goes to the disk.
_PATIENCE_SECONDS: Final = 5.0
_ROOM_SECONDS: Final = 30.0


class SpoolRoom:
    """The bytes that may wait in files below ``folder``: ``most`` of all answers, a quarter of it of one caller's."""

    def __init__(self, folder: Path, *, most: int) -> None:
        self.folder = folder
        self._most = most
        self._used: dict[str, int] = {}
        self._freed = asyncio.Event()

    @property
    def used(self) -> int:
        """How many bytes wait."""
        return sum(self._used.values())

    async def take(self, caller: str, size: int, *, is_contended: Callable[[], bool]) -> None:
        """Wait until there is room for ``size`` bytes more.

        Raises:
            UnavailableProblem: there was none for half a minute, while others waited for what this answer holds.
        """
        while True:
            used = self._used.get(caller, 0)
            if not used or (used + size <= self._most // _CALLER_SHARES and self.used + size <= self._most):
                self._used[caller] = used + size
                return
            self._freed.clear()
            try:
                async with asyncio.timeout(_ROOM_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                if is_contended():
                    raise UnavailableProblem(
                        "answer_cut", "The answer was read too slowly while others waited."
                    ) from None

    def give_back(self, caller: str, size: int) -> None:
        """So many bytes do not wait any more."""
        left = self._used[caller] - size
        if left:
            self._used[caller] = left
        else:
            del self._used[caller]
        self._freed.set()


class _Segment:
    """A file without a name, written at its end and read from its beginning."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  closed by its owner
        self.size = 0
        self.read_bytes = 0
        self.is_busy = False

    def write(self, part: bytes) -> None:
        """Append it, on a thread."""
        view, end = memoryview(part), self.size
        while view:
            written = os.pwrite(self._file.fileno(), view, end)
            view, end = view[written:], end + written

    def read(self) -> bytes:
        """The next bytes, on a thread."""
        return os.pread(self._file.fileno(), min(_PIECE_BYTES, self.size - self.read_bytes), self.read_bytes)

    def close(self) -> None:
        """Give its space back."""
        self._file.close()


_Item: TypeAlias = bytes | _Segment


class _Spool:
    """One answer's bytes, first in, first out; one task puts, another takes."""

    def __init__(self, room: SpoolRoom, caller: str, *, is_contended: Callable[[], bool]) -> None:
        self._room = room
        self._caller = caller
        self._is_contended = is_contended
        self._items: deque[_Item] = deque()
        self._taken: dict[_Segment, int] = {}
        self._memory = 0
        self._patience = _PATIENCE_SECONDS
        self._ended = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    async def put(self, part: bytes) -> None:
        """Add bytes at the end.

        Raises:
            UnavailableProblem: there is no room for them, and others wait.
        """
        await self._wait_for_memory()
        last = self._items[-1] if self._items else None
        if not isinstance(last, _Segment) and self._memory < MEMORY_BYTES:
            self._keep(part)
            return
        await self._room.take(self._caller, len(part), is_contended=self._is_contended)
        last = self._items[-1] if self._items else None  # it may have been read to its end meanwhile
        if not isinstance(last, _Segment) or last.size >= _SEGMENT_BYTES:
            last = _Segment(self._room.folder)
            self._items.append(last)
        self._taken[last] = self._taken.get(last, 0) + len(part)
        last.is_busy = True
        try:
            await _on_thread(partial(last.write, part))
            last.size += len(part)
        except OSError as error:
            failure: OSError | None = error
        else:
            failure = None
        finally:
            last.is_busy = False
            self._filled.set()
        if failure is not None:
            structlog.get_logger().warning("spool_not_written", reason=failure.strerror, folder=str(self._room.folder))
            while self._items:  # without a disk the reading waits for the client
                self._drained.clear()
                await self._drained.wait()
            self._keep(part)

    def _keep(self, part: bytes) -> None:
        self._items.append(part)
        self._memory += len(part)
        self._filled.set()

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True
        self._filled.set()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """All bytes, in their order, until the end."""
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
        """Give everything back; nobody puts or takes any more."""
        for item in self._items:
            if isinstance(item, _Segment):
                self._close(item)
        self._items.clear()

    async def _wait_for_memory(self) -> None:
        """While the client reads quickly, the reading waits for it, up to the end of its patience."""
        loop = asyncio.get_running_loop()
        while self._memory >= MEMORY_BYTES and self._patience > 0 and isinstance(self._items[-1], bytes):
            begun = loop.time()
            self._drained.clear()
            try:
                async with asyncio.timeout(self._patience):
                    await self._drained.wait()
            except TimeoutError:
                self._patience = 0
            else:
                self._patience -= loop.time() - begun

    def _close(self, segment: _Segment) -> None:
        segment.close()
        self._drained.set()
        self._room.give_back(self._caller, self._taken.pop(segment))


async def spooled(
    parts: AsyncGenerator[bytes, None], room: SpoolRoom, caller: str, *, is_contended: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """The same bytes, of which those that are not taken yet wait in ``room``; ``parts`` is read to its end at once.

    Raises:
        UnavailableProblem: the caller reads so slowly that there is no room, while others wait (``is_contended``).
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
    """Do it on a thread; it is waited for even where the caller is cancelled, so that no file is closed under it."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
