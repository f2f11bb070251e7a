"""Runs the blocking work of the state file in a thread of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(pool: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``call`` in a thread of the pool and return its result. If the caller is cancelled, the call still completes."""
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(pool, partial(call, *args, **kwargs)))


def threaded(
    pool: str,
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], Coroutine[Any, Any, T]]]:
    """Make a method asynchronous: it runs `in_thread` in the object's ``pool``."""

    def decorate(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
        @wraps(method)
        async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await in_thread(getattr(self, pool), method, self, *args, **kwargs)

        return run

    return decorate
