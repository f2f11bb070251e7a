"""Calls that work with both clients, so that one test covers the blocking and the asynchronous client."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

from ingestd.client import AsyncClient, Client

T = TypeVar("T")

AnyClient: TypeAlias = Client | AsyncClient


async def done(response: T | Awaitable[T]) -> T:
    """Return the value of a call; await it if the client is asynchronous."""
    return await response if inspect.isawaitable(response) else response
