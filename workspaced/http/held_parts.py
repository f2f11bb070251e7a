"""Parts of a response that release a resource when they are closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any


class HeldParts(AsyncGenerator[bytes, None]):
    """Parts of a response with a release function, which runs when they are closed, even if none was read."""

    def __init__(self, parts: AsyncGenerator[bytes, None], release: Callable[[], Awaitable[None]]) -> None:
        """Await ``release`` once, when the parts are closed."""
        self._parts = parts
        self._release = release
        self._is_released = False

    async def asend(self, value: None) -> bytes:
        """Return the next part."""
        return await self._parts.asend(value)

    async def athrow(self, *arguments: Any) -> bytes:
        """Raise in the parts' generator."""
        return await self._parts.athrow(*arguments)

    async def aclose(self) -> None:
        """Close the parts, then release the resource."""
        try:
            await self._parts.aclose()
        finally:
            if not self._is_released:
                self._is_released = True
                await self._release()
