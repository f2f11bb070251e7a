"""Files that a thread opens for a task, which may be cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def acquired(opening: asyncio.Future[T], release: Callable[[T], object]) -> T:
    """Return what a thread opens. If the caller is cancelled meanwhile, wait for it and release it."""
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait([opening])
        if opening.exception() is None:
            release(opening.result())
        raise
