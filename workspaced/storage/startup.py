"""What a process does before it serves, tried again for as long as its database is away or behind (contract P3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import PasswordRefused, StorageUnusable

_AGAIN_SECONDS = 1.0


class Startup:
    """A first step, and the work that has to wait for it."""

    def __init__(self, step: Callable[[], Awaitable[None]]) -> None:
        """``step`` raises Unavailable while it can't be done."""
        self._step = step
        self._done = asyncio.Event()
        self._stopped = asyncio.Event()
        self._said = ""

    async def first(self) -> None:
        """Try it for the first time. That a password is refused is then the end: whoever starts is there to correct it.

        Raises:
            StorageUnusable: it never can be done, or not with this password.
        """
        await self._attempt(retryable=lambda problem: not isinstance(problem, PasswordRefused))

    async def _attempt(self, *, retryable: Callable[[UnavailableProblem], bool]) -> None:
        """Try it once; why it can't be done now is logged.

        Raises:
            StorageUnusable: it never can.
        """
        try:
            await self._step()
        except UnavailableProblem as problem:
            if not retryable(problem):
                raise StorageUnusable(problem.detail) from problem
            if problem.detail != self._said:
                structlog.get_logger().warning("service_waits", code=problem.code, reason=problem.detail)
            self._said = problem.detail
        else:
            if self._said:
                structlog.get_logger().info("service_ready")
            self._done.set()

    async def retry_until_ready(self) -> None:
        """Try until it is done, or stopped."""
        while not self._done.is_set() and not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), _AGAIN_SECONDS)
            except TimeoutError:
                try:
                    await self._attempt(retryable=lambda _problem: True)
                except (
                    StorageUnusable
                ) as error:  # said once more at each attempt's end would be noise: it stays unready
                    structlog.get_logger().error("storage_unusable", reason=str(error))
                    return

    async def then(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work once the step is done; not at all if it is stopped before."""
        waits = [asyncio.create_task(event.wait()) for event in (self._done, self._stopped)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._done.is_set():
            await work()

    def stop(self) -> None:
        """Wait no longer."""
        self._stopped.set()
