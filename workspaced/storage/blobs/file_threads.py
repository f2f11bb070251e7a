"""Threads for work on files. The work runs to its end even if its caller is cancelled."""

from __future__ import annotations

import asyncio
import errno
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, ParamSpec, TypeVar, cast

from workspaced.core.problems import UnavailableProblem

P = ParamSpec("P")
T = TypeVar("T")


class FileThreads:
    """Runs functions on its own threads."""

    def __init__(self, count: int = 8) -> None:
        self._threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix="blobs")

    async def stop(self) -> None:
        """Wait until all work has ended, and end the threads."""
        await asyncio.to_thread(self._threads.shutdown)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work`` on a thread, and wait for its end even if cancelled, so that no file is closed while in use."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(work, *args, **kwargs))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def finish(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run ``work`` like `run`, but also if the caller is cancelled before the work begins."""
        await asyncio.shield(asyncio.ensure_future(self.run(work, *args, **kwargs)))

    async def acquire(self, work: Callable[[Path], T], path: Path, *, release: Callable[[T], object]) -> T:
        """Open ``path`` with ``work`` on a thread; ``release`` the result if the caller is cancelled meanwhile."""
        return await acquired(asyncio.get_running_loop().run_in_executor(self._threads, work, path), release)


async def open_file(path: Path, mode: Literal["rb", "wb"]) -> BinaryIO:
    """Open a file on a thread. If the caller is cancelled meanwhile, the file is closed."""
    opening = asyncio.get_running_loop().run_in_executor(None, path.open, mode)
    return cast("BinaryIO", await acquired(opening, lambda opened: opened.close()))


async def acquired(opening: asyncio.Future[T], release: Callable[[T], object]) -> T:
    """Return the result of ``opening``. If the caller is cancelled meanwhile, wait for the result and release it."""
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait([opening])
        if opening.exception() is None:
            release(opening.result())
        raise


@contextmanager
def disk_problems(*, passes: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Raise UnavailableProblem for an error of the disk, also for a folder that was removed; ``passes`` stay unchanged."""
    try:
        yield
    except passes:
        raise
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise UnavailableProblem("storage_full", "The disk that holds files is full.", retry_seconds=30) from error
        raise UnavailableProblem(
            "storage_failed", f"The folder that holds files can't be used ({error.strerror}).", retry_seconds=5
        ) from error
