"""Work that remains after a request, done in bounded steps, so that other callers can write between the steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from workspaced.core.problems import Problem
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.store import Store

_RETRY_SECONDS = 1.0


async def repeat(store: Store, step: Callable[[Transaction], int], *, rows: int) -> int:
    """Run a step of about ``rows`` rows repeatedly, each time in its own transaction, until it has nothing to do.

    Return the total number of rows.
    """
    total = 0
    while done := await store.write(step, weight=rows):
        total += done
    return total


class IncrementalJob:
    """Runs a step, each time in its own transaction, until nothing is left to do.

    A commit that notifies the channel wakes the job. The job also runs at its start and periodically, for work that other
    processes or a crash left. Several processes may run the same job: a step finds only work that is not done yet.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        channel: str,
        pending: Callable[[ReadTransaction], bool],
        step: Callable[[Transaction, int], int],
        rows: int,
        every_seconds: float,
    ) -> None:
        """``step`` processes at most about ``rows`` rows and returns their number; 0 if there is nothing to do."""
        self._name = name
        self._store = store
        self._channel = channel
        self._pending = pending
        self._step = step
        self._rows = rows
        self._every_seconds = every_seconds
        self._wakeup = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        self._store.listen(self._channel, self._wakeup.set)
        while True:
            self._wakeup.clear()
            pause = self._every_seconds
            try:
                await self.finish()
            except Problem as problem:
                structlog.get_logger().warning("job_postponed", job=self._name, reason=problem.detail)
                pause = _RETRY_SECONDS
            except Exception:  # noqa: BLE001  logged and tried again; the process must go on serving
                structlog.get_logger().exception("job_failed", job=self._name)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wakeup.wait()

    async def finish(self) -> int:
        """Do all present work; return the number of rows.

        Raises:
            UnavailableProblem: the database is busy or can't be reached; the steps that were done stay done.
        """
        done = 0
        while await self._store.read_brief(self._pending):
            count = await self._store.write(lambda tx: self._step(tx, self._rows), weight=self._rows)
            if not count:
                break
            done += count
        return done
