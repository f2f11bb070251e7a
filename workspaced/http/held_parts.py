"""Parts of an answer that hold something for as long as they are sent: a share, or a place among those that may be open."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any


class HeldParts(AsyncGenerator[bytes, None]):
    """Parts of an answer that hold something until they are closed, also if none of them was asked for."""

    def __init__(self, parts: AsyncGenerator[bytes, None], release: Callable[[], Awaitable[None]]) -> None:
        """``release`` is awaited once."""
        self._parts = parts
        self._release = release
        self._is_released = False

    async def asend(self, value: None) -> bytes:
        """As the parts."""
        return await self._parts.asend(value)

    async def athrow(self, *arguments: Any) -> bytes:
        """As the parts."""
        return await self._parts.athrow(*arguments)

    async def aclose(self) -> None:
        """Close the parts and release what they hold."""
        try:
            await self._parts.aclose()
        finally:
            if not self._is_released:
                self._is_released = True
                await self._release()
