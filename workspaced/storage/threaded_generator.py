"""Iterate over a blocking generator on threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Executor
from typing import TypeVar, cast

T = TypeVar("T")
_END = object()


async def iterate_on_threads(threads: Executor, steps: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield what the generator yields; close it with this one, even if it is left early."""
    loop = asyncio.get_running_loop()
    step: asyncio.Future[T | object] = loop.run_in_executor(threads, next, steps, _END)
    try:
        while (item := await asyncio.shield(step)) is not _END:
            yield cast("T", item)
            step = loop.run_in_executor(threads, next, steps, _END)
    finally:
        await asyncio.shield(loop.create_task(_close(threads, step, steps)))


async def _close(threads: Executor, step: asyncio.Future[T | object], steps: Generator[T, None, None]) -> None:
    """Wait for the last step, since a generator can't be closed while a thread runs it; then close it."""
    await asyncio.wait([step])
    await asyncio.get_running_loop().run_in_executor(threads, steps.close)
