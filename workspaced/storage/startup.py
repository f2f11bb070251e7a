"""The first step of a process, retried while its database is unavailable or not migrated (contract P3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import StorageRefused, StorageUnusable, no_response

_AGAIN_SECONDS = 1.0
_ATTEMPT_SECONDS = 10.0
"""The time limit of an attempt, which may wait, for example for a standby. After the first attempt, /readyz is served."""


class Startup:
    """The first step of a process, and work that waits until this step is done."""

    def __init__(self, step: Callable[[], Awaitable[None]]) -> None:
        """``step`` raises UnavailableProblem while it can't be done."""
        self._step = step
        self._done = asyncio.Event()
        self._stopped = asyncio.Event()
        self._problem: UnavailableProblem | None = None

    async def first(self) -> None:
        """Try the step for the first time. `StorageRefused` is fatal here, so that the operator corrects it at the start.

        Raises:
            StorageUnusable: the step can never be done, or not before a correction.
        """
        await self._attempt(retryable=lambda problem: not isinstance(problem, StorageRefused))

    async def _attempt(self, *, retryable: Callable[[UnavailableProblem], bool]) -> None:
        """Try the step once, and log why it can't be done now; raise StorageUnusable if it can never be done."""
        try:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                await self._step()
        except (UnavailableProblem, TimeoutError) as reason:
            problem = reason if isinstance(reason, UnavailableProblem) else no_response(_ATTEMPT_SECONDS)
            if not retryable(problem):
                raise StorageUnusable(problem.detail) from reason
            if self._problem is None or problem.detail != self._problem.detail:
                structlog.get_logger().warning("service_waits", code=problem.code, reason=problem.detail)
            self._problem = problem
        else:
            if self._problem:
                structlog.get_logger().info("service_ready")
            self._done.set()

    def require_done(self) -> None:
        """Check that the step is done.

        Raises UnavailableProblem: the step is not done; the problem has the reason why the last attempt failed.
        """
        if not self._done.is_set():
            raise self._problem or UnavailableProblem("starting", "The service is starting.", retry_seconds=1)

    async def retry_until_ready(self) -> None:
        """Retry the step until it is done, or `stop` is called. Raises StorageUnusable: the step can never be done."""
        while not self._done.is_set() and not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), _AGAIN_SECONDS)
            except TimeoutError:
                try:
                    await self._attempt(retryable=lambda _problem: True)
                except StorageUnusable as error:
                    structlog.get_logger().error("storage_unusable", reason=str(error))
                    raise

    async def then(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run the work after the step is done; not at all if `stop` is called before."""
        waits = [asyncio.create_task(event.wait()) for event in (self._done, self._stopped)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._done.is_set():
            await work()

    def stop(self) -> None:
        """Make `retry_until_ready` return, and `then` return without doing its work."""
        self._stopped.set()
