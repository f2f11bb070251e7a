"""An unexpected exception ends one part, which restarts; a failure of the process is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ingestd.process.supervision import PartFailure, Run, keep_running, one_line


class Journal:
    def __init__(self) -> None:
        self.failures: list[PartFailure] = []
        self.recoveries: list[str] = []
        self.has_recovered = asyncio.Event()

    async def failed(self, failure: PartFailure) -> None:
        self.failures.append(failure)

    async def recovered(self, part: str) -> None:
        self.recoveries.append(part)
        self.has_recovered.set()

    async def keep(self, run: Run, *, stable_seconds: float = 60.0) -> None:
        await keep_running(
            "intake a",
            run,
            delay=lambda failures: 0.001 * failures,
            is_fatal=lambda error: isinstance(error, LookupError),
            on_failure=self.failed,
            on_recovery=self.recovered,
            stable_seconds=stable_seconds,
        )


def failing(*errors: Exception | None) -> Callable[[], asyncio.Future[None]]:
    left = list(errors)

    def run() -> asyncio.Future[None]:
        result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        error = left.pop(0)
        if error is None:
            result.set_result(None)
        else:
            result.set_exception(error)
        return result

    return run


async def test_a_part_that_fails_restarts_and_has_recovered_when_it_returns() -> None:
    journal = Journal()
    await journal.keep(failing(ValueError("first"), ValueError("second"), None))
    assert [(one.failures, one.sentence) for one in journal.failures] == [
        (1, "ValueError: first"),
        (2, "ValueError: second"),
    ]
    assert [one.retry_seconds for one in journal.failures] == [0.001, 0.002]
    assert "ValueError: first" in journal.failures[0].traceback
    assert journal.recoveries == ["intake a"]


async def test_a_part_that_never_failed_reports_no_recovery() -> None:
    journal = Journal()
    await journal.keep(failing(None))
    assert not journal.recoveries
    assert not journal.failures


async def test_a_failure_of_the_process_is_raised() -> None:
    journal = Journal()
    with pytest.raises(KeyError):
        await journal.keep(failing(KeyError("state file")))
    assert not journal.failures


async def test_a_part_that_runs_long_enough_has_recovered_and_its_failures_count_from_one_again() -> None:
    journal = Journal()
    starts = 0

    async def run() -> None:
        nonlocal starts
        starts += 1
        if starts == 2:
            await journal.has_recovered.wait()
        if starts < 4:
            raise ValueError(starts)

    await asyncio.wait_for(journal.keep(run, stable_seconds=0), 30)
    assert [one.failures for one in journal.failures][:2] == [1, 1]


async def test_cancelling_ends_the_part_and_its_supervision() -> None:
    journal = Journal()
    ended = asyncio.Event()

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    kept = asyncio.create_task(journal.keep(run))
    await asyncio.sleep(0)
    kept.cancel()
    await asyncio.wait([kept])
    assert kept.cancelled()
    assert ended.is_set()


def test_the_first_exception_of_a_group_describes_the_failure() -> None:
    assert one_line(ExceptionGroup("two", [ValueError("a\nb"), KeyError("c")])) == "ValueError: a b"
    assert one_line(ValueError()) == "ValueError"
