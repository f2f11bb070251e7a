"""Supervision of the daemon's parts: a failure is logged and shown by `ingestd status`, and the part is restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ingestd.core.backoff import Backoff
from ingestd.core.clock import Now, Random
from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.mirror.reports import FailedPart
from ingestd.mirror.sqlite.failed_parts import FailedPartStore
from ingestd.process.supervision import PartFailure, Run, keep_running, leaves
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import PartFailed, PartRecovered

_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
_STABLE_SECONDS = 60.0


class PartSupervisor:
    """Runs parts under supervision; implements `ingestd.process.supervision.KeepRunning`.

    Only an unusable state file ends the process: every `MirrorError` except `MirrorFull` is raised.
    """

    def __init__(self, store: FailedPartStore, *, emit: Emit, now: Now, random: Random) -> None:
        self._store = store
        self._emit = emit
        self._now = now
        self._random = random
        self._failed: set[str] = set()
        """Parts with a stored failure."""

    async def __call__(self, part: str, run: Run) -> None:
        """Run ``part`` until it returns or is cancelled. Restart the part after each unexpected exception.

        Raises:
            MirrorError: the state file cannot be used.
        """
        try:
            await self._keep_running(part, run)
        finally:
            if part in self._failed:  # a reload cancelled the part
                await self._forget(part)

    async def _keep_running(self, part: str, run: Run) -> None:
        await keep_running(
            part,
            run,
            # Jitter covers only half of the delay: a part that fails at once must not restart in a tight loop.
            delay=lambda failures: (_BACKOFF.ceiling(failures) + _BACKOFF.delay(failures, self._random())) / 2,
            is_fatal=is_fatal,
            on_failure=self._record,
            on_recovery=self._recover,
            stable_seconds=_STABLE_SECONDS,
        )

    async def forget_failures(self) -> None:
        """Delete the stored failures of an earlier process."""
        await _unless_full(self._store.clear_all)

    async def _record(self, failure: PartFailure) -> None:
        self._emit(
            PartFailed(
                part=failure.part,
                sentence=failure.sentence,
                failures=failure.failures,
                retry_in_seconds=round(failure.retry_seconds, 1),
                traceback=failure.traceback if failure.failures == 1 else "",
            )
        )
        now = self._now()
        failed = FailedPart(
            part=failure.part,
            sentence=failure.sentence,
            failures=failure.failures,
            since=now,
            retry_at=now + failure.retry_seconds,
        )
        self._failed.add(failure.part)
        await _unless_full(lambda: self._store.record(failed))

    async def _recover(self, part: str) -> None:
        self._emit(PartRecovered(part=part))
        await self._forget(part)

    async def _forget(self, part: str) -> None:
        self._failed.discard(part)
        await _unless_full(lambda: self._store.clear(part))


def is_fatal(error: BaseException) -> bool:
    """Return True if the whole process must end because the state file cannot be used."""
    return any(isinstance(leaf, MirrorError) and not isinstance(leaf, MirrorFull) for leaf in leaves(error))


async def _unless_full(write: Callable[[], None]) -> None:
    """Write to the state file, except on a full disk. The log has the failure, and the part restarts anyway."""
    try:
        await asyncio.to_thread(write)
    except MirrorFull:
        return


@contextmanager
def mirror_failures_alone() -> Iterator[None]:
    """Raise a `MirrorError` alone instead of in the nested exception groups of the task groups."""
    try:
        yield
    except BaseExceptionGroup as group:
        for leaf in leaves(group):
            if isinstance(leaf, MirrorError):
                raise leaf from group
        raise
