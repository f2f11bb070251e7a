from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from ingestd.intake.rescans import Rescans
from ingestd.intake.thread_pool import THREADS, SourceThreads
from ingestd.telemetry import Event

DEADLINE = 10.0


def ignored(_: Event) -> None:
    """Emit nothing."""


class Resting:
    """A source at rest; ``make`` is its pass."""

    def __init__(self, pipeline: str, make: Callable[[], object], *, rests: bool = True) -> None:
        self.pipeline = pipeline
        self.make_pass = make
        self._rests = rests
        self.begun = asyncio.Event()
        self.ended: asyncio.Future[Future[object] | None] = asyncio.get_running_loop().create_future()

    async def begin_rescan(self, at: float) -> bool:
        assert at <= asyncio.get_running_loop().time()
        self.begun.set()
        return self._rests

    def end_rescan(self, outcome: Future[object] | None) -> None:
        self.ended.set_result(outcome)


async def make_all(*sources: Resting, until: Callable[[], object]) -> None:
    """Make the passes of all at one moment, until the result of ``until`` is there."""
    threads = SourceThreads(emit=ignored)
    rescans: Rescans[object] = Rescans(threads)
    at = asyncio.get_running_loop().time()
    running = asyncio.create_task(rescans.run())
    async with asyncio.timeout(DEADLINE):
        for source in sources:
            rescans.add(source, at)
        await until()  # type: ignore[misc]
    running.cancel()
    await asyncio.wait([running])
    await threads.close()


async def test_passes_of_one_moment_are_one_call_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.intake.rescans.FAST_SECONDS", 3600.0)
    sources = [Resting(f"p{number}", threading.get_ident) for number in range(50)]
    await make_all(*sources, until=lambda: asyncio.gather(*(one.ended for one in sources)))
    outcomes = [one.ended.result() for one in sources]
    used = {outcome.result() for outcome in outcomes if outcome is not None}
    assert None not in outcomes
    assert len(used) == 1
    assert used != {threading.get_ident()}


async def test_a_source_that_hangs_delays_no_other() -> None:
    released = threading.Event()
    hanging = Resting("hanging", lambda: released.wait(DEADLINE))
    others = [Resting(f"p{number}", threading.get_ident) for number in range(5)]

    async def until() -> None:
        await asyncio.gather(*(one.ended for one in others))
        assert not hanging.ended.done()
        released.set()
        await hanging.ended

    await make_all(others[0], hanging, *others[1:], until=until)
    outcome = hanging.ended.result()
    assert outcome is not None
    assert outcome.result() is True


async def test_an_exception_is_that_of_its_source_alone() -> None:
    def fail() -> object:
        raise OSError("unplugged")

    failing, other = Resting("failing", fail), Resting("other", threading.get_ident)
    await make_all(failing, other, until=lambda: asyncio.gather(failing.ended, other.ended))
    outcome = failing.ended.result()
    assert outcome is not None
    with pytest.raises(OSError, match="unplugged"):
        outcome.result()
    assert other.ended.result() is not None


async def test_a_source_that_is_not_at_rest_is_left_alone() -> None:
    busy, other = Resting("busy", threading.get_ident, rests=False), Resting("other", threading.get_ident)
    await make_all(busy, other, until=lambda: other.ended)
    assert not busy.ended.done()


async def test_passes_that_were_not_made_at_the_end_are_given_back() -> None:
    threads = SourceThreads(emit=ignored)
    rescans: Rescans[object] = Rescans(threads)
    released = threading.Event()
    occupied = [
        await threads.start(str, lambda: released.wait(DEADLINE)) for _ in range(THREADS)
    ]  # every thread, so that no pass begins
    waiting = Resting("waiting", threading.get_ident)

    running = asyncio.create_task(rescans.run())
    rescans.add(waiting, asyncio.get_running_loop().time())
    await asyncio.wait_for(waiting.begun.wait(), DEADLINE)
    running.cancel()
    await asyncio.wait([running])
    assert await asyncio.wait_for(waiting.ended, DEADLINE) is None
    released.set()
    await asyncio.gather(*occupied)
    await threads.close()
