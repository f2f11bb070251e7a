"""A generator that blocks, stepped through on threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Executor
from typing import TypeVar, cast

T = TypeVar("T")
_END = object()


async def iterate_on_threads(threads: Executor, steps: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """What the generator yields; it is closed with this one, even where that is left early."""
    loop = asyncio.get_running_loop()
    step: asyncio.Future[T | object] = loop.run_in_executor(threads, next, steps, _END)
    try:
        while (item := await asyncio.shield(step)) is not _END:
            yield cast("T", item)
            step = loop.run_in_executor(threads, next, steps, _END)
    finally:
        await asyncio.shield(loop.create_task(_close(threads, step, steps)))


async def _close(threads: Executor, step: asyncio.Future[T | object], steps: Generator[T, None, None]) -> None:
    """A generator can't be closed while a thread is inside it, so its last step comes first."""
    await asyncio.wait([step])
    await asyncio.get_running_loop().run_in_executor(threads, steps.close)
