"""Responses that are too long for memory: a limit for each caller, and spool space for bytes that are not sent yet."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any, Final, TypeVar

from workspaced.core.problems import TooManyRequests, UnavailableProblem
from workspaced.http.responses import HeldParts
from workspaced.http.spool import SpoolRoom, spooled

T = TypeVar("T")
_WAIT_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5


class LongResponses:
    """The long responses that this process is sending."""

    def __init__(self, room: SpoolRoom, *, per_caller: int) -> None:
        """Each caller may have ``per_caller`` long responses at once; 0 means no limit."""
        self._room = room
        self._per_caller = per_caller
        self._under_way: Counter[str] = Counter()
        self._ended = asyncio.Event()
        self._waiting = 0

    async def begin(self, caller: str, source: AsyncGenerator[T, None]) -> tuple[T, HeldParts]:
        """Return the first item of ``source``, and the further items, which are bytes, as parts of a response.

        Wait if the caller has reached its limit.

        Raises:
            TooManyRequests: the caller has the maximum number of long responses, and none ended within 30 seconds.
            UnavailableProblem: the database has the maximum number of streams, and none ended within 30 seconds.
        """
        await self._enter(caller)
        try:
            first = await self._first(source)
        except BaseException:
            await source.aclose()
            self._leave(caller)
            raise
        parts = spooled(_as_bytes(source), self._room, caller, is_contended=lambda: self._waiting > 0)

        async def release() -> None:
            try:
                await source.aclose()
            finally:
                self._leave(caller)

        return first, HeldParts(parts, release)

    async def _enter(self, caller: str) -> None:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                while self._per_caller and self._under_way[caller] >= self._per_caller:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            raise TooManyRequests(
                "too_many_long_responses",
                f"This caller reads {self._per_caller} long responses at once. Read them to their end first.",
                retry_seconds=_RETRY_SECONDS,
            ) from None
        self._under_way[caller] += 1

    def _leave(self, caller: str) -> None:
        self._under_way[caller] -= 1
        if not self._under_way[caller]:
            del self._under_way[caller]
        self._ended.set()

    async def _first(self, source: AsyncGenerator[T, None]) -> T:
        self._waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                return await anext(source)
        except TimeoutError:
            sentence = "The service reads its maximum number of long lists at once. Try again in a moment."
            raise UnavailableProblem("streams_busy", sentence, retry_seconds=_RETRY_SECONDS) from None
        finally:
            self._waiting -= 1


async def _as_bytes(source: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    async for part in source:
        yield part
