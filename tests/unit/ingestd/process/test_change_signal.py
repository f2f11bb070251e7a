"""No change is lost between reading a condition and waiting for the next change."""

from __future__ import annotations

import asyncio
import threading

from ingestd.process.change_signal import ChangeSignal


async def test_a_change_between_reading_and_waiting_ends_the_wait_immediately() -> None:
    signal = ChangeSignal()
    known = signal.generation
    signal.notify()
    assert await asyncio.wait_for(signal.wait_past(known), 60)


async def test_one_change_wakes_every_waiter() -> None:
    signal = ChangeSignal()
    waiting = [asyncio.create_task(signal.wait_past(0)) for _ in range(3)]
    await asyncio.sleep(0)
    signal.notify()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [True, True, True]


async def test_a_wait_with_a_timeout_reports_that_nothing_changed() -> None:
    signal = ChangeSignal()
    assert not await signal.wait_past(signal.generation, seconds=0)


async def test_a_cancelled_waiter_is_removed() -> None:
    signal = ChangeSignal()
    waiting = asyncio.create_task(signal.wait_past(0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not signal._waiters
    signal.notify()


async def test_changes_from_other_threads_are_all_noticed() -> None:
    signal = ChangeSignal()
    total = 4 * 500

    def change() -> None:
        for _ in range(500):
            signal.notify()

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    known = 0
    async with asyncio.timeout(30):
        while known < total:
            await signal.wait_past(known)
            known = signal.generation
    for thread in threads:
        thread.join()
    assert known == total
