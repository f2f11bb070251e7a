from __future__ import annotations

import asyncio
import threading
import time

from ingestd.intake.thread_pool import SourceThreads
from ingestd.telemetry import Event


def ignored(_: Event) -> None:
    """Emit nothing."""


async def test_calls_that_return_soon_follow_each_other() -> None:
    threads = SourceThreads(emit=ignored, fast_seconds=3600)
    running = threading.Lock()

    def call() -> bool:
        alone = running.acquire(blocking=False)
        time.sleep(0.001)  # long enough for another thread to begin
        if alone:
            running.release()
        return alone

    futures = await asyncio.gather(*(threads.start(str, call) for _ in range(20)))
    assert all(await asyncio.gather(*futures))
    await threads.close()


async def test_a_call_that_takes_longer_does_not_delay_the_next_one() -> None:
    threads = SourceThreads(emit=ignored)
    released = threading.Event()
    waiting = await threads.start(lambda: "waiting", released.wait)
    await (await threads.start(lambda: "next", released.set))
    assert await waiting
    await threads.close()


async def test_a_cancelled_caller_gives_up_its_turn() -> None:
    threads = SourceThreads(emit=ignored, fast_seconds=3600)
    released = threading.Event()
    running = await threads.start(lambda: "running", released.wait)
    cancelled = asyncio.create_task(threads.start(lambda: "cancelled", released.set))
    await asyncio.sleep(0)  # it waits for its turn now
    cancelled.cancel()
    await asyncio.wait([cancelled])
    released.set()
    await running
    assert await (await threads.start(lambda: "next", threading.get_ident))
    await threads.close()
