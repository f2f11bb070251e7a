"""Runs the blocking work of the state file in a thread of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(pool: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``call`` in a thread of the pool and return its result. If the caller is cancelled, the call still completes."""
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(pool, partial(call, *args, **kwargs)))
