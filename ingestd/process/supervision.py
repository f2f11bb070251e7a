"""Keeps one part of a process running: an unexpected exception ends only this part, which starts again after a delay."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeAlias

import msgspec

Run: TypeAlias = Callable[[], Awaitable[None]]
"""Runs the part until the part is cancelled, returns or raises."""


class KeepRunning(Protocol):
    """Runs a part under supervision. ``part``: the unique name of the part for people, such as ``intake mass-budget``."""

    async def __call__(self, part: str, run: Run) -> None:
        """Return when the part returns. Raise if the part is cancelled, or if its failure concerns the whole process."""


class PartFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One unexpected end of a part.

    ``sentence``: the exception in one line. ``failures``: the number of failures since the last recovery, including this
    failure. ``retry_seconds``: the seconds until the part starts again.
    """

    part: str
    sentence: str
    traceback: str
    failures: int
    retry_seconds: float


async def keep_running(
    part: str,
    run: Run,
    *,
    delay: Callable[[int], float],
    is_fatal: Callable[[Exception], bool],
    on_failure: Callable[[PartFailure], Awaitable[None]],
    on_recovery: Callable[[str], Awaitable[None]],
    stable_seconds: float,
) -> None:
    """Run a part, and start it again whenever it raises, until it returns or is cancelled.

    ``delay`` returns the seconds to wait after the given number of consecutive failures. A part recovers if it runs for
    ``stable_seconds`` after a failure, or returns. After a recovery, failures count from 1 again.

    Raises:
        Exception: an exception of the part for which ``is_fatal`` returns True; the part is not started again.
    """
    failures = 0

    async def recover() -> None:
        nonlocal failures
        await asyncio.sleep(stable_seconds)
        failures = 0
        await on_recovery(part)

    while True:
        recovery = asyncio.create_task(recover(), name=f"recovery of {part}") if failures else None
        try:
            await run()
        except Exception as error:
            if is_fatal(error):
                raise
            failures += 1
            failure = PartFailure(
                part=part,
                sentence=one_line(error),
                traceback="".join(traceback.format_exception(error)),
                failures=failures,
                retry_seconds=delay(failures),
            )
        else:
            if failures:
                await on_recovery(part)
            return
        finally:
            if recovery is not None:
                recovery.cancel()
                await asyncio.wait([recovery])
        await on_failure(failure)
        await asyncio.sleep(failure.retry_seconds)


def one_line(error: BaseException) -> str:
    """Return the class and message of an exception in one line; for an exception group, of its first exception."""
    error = next(leaves(error))
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, at any depth. For an exception that is no group, yield the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaves(part)
    else:
        yield error


async def finish_within(seconds: float, tasks: set[asyncio.Task[Any]]) -> None:
    """Wait at most ``seconds`` for tasks, then cancel them and wait for their end."""
    if running := {task for task in tasks if not task.done()}:
        _, late = await asyncio.wait(running, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
