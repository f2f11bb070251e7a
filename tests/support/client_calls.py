"""One test for both clients: what the blocking one gives at once, the other one is waited for."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import TypeAlias, TypeVar

from ingestd.client import AsyncClient, Client

T = TypeVar("T")

AnyClient: TypeAlias = Client | AsyncClient


async def done(response: T | Awaitable[T]) -> T:
    """The value of a call."""
    return await response if inspect.isawaitable(response) else response


async def collected(records: Iterator[T] | AsyncIterator[T]) -> list[T]:
    """All that an iterator gives."""
    if isinstance(records, AsyncIterator):
        return [record async for record in records]
    return list(records)
