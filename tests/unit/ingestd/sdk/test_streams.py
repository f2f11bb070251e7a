"""The inbox of a stream: bounds, back-pressure and its end; and the thread with an event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingestd.sdk.streams import Inbox, InboxClosed, LoopThread

SECONDS = 30.0


def test_messages_leave_in_the_order_of_their_arrival_and_wake_an_empty_inbox() -> None:
    woken: list[int] = []
    inbox: Inbox[int] = Inbox(max_items=10, max_bytes=100, wake=lambda: woken.append(len(inbox)))
    for n in range(3):
        inbox.put(n, 1)
    assert (woken, inbox.take(2), inbox.take(9), inbox.take(9)) == ([1], [0, 1], [2], [])


@pytest.mark.parametrize(("max_items", "max_bytes", "fits"), [(2, 100, 2), (10, 25, 2), (10, 5, 1)])
def test_a_full_inbox_makes_the_sender_wait_until_something_is_taken(max_items: int, max_bytes: int, fits: int) -> None:
    inbox: Inbox[int] = Inbox(max_items=max_items, max_bytes=max_bytes)
    for n in range(fits):
        assert inbox.put(n, 10, timeout_seconds=0)
    assert not inbox.put(9, 10, timeout_seconds=0)
    assert not inbox.offer(9, 10)
    assert inbox.dropped == 1
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(inbox.put, fits, 10)
        assert inbox.take(1) == [0]
        assert sending.result(SECONDS)
    assert len(inbox) == fits


def test_a_closed_inbox_ends_waiting_senders_and_gives_out_what_it_has() -> None:
    inbox: Inbox[int] = Inbox(max_items=1, max_bytes=1)
    inbox.put(1, 1)
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(inbox.put, 2, 1)
        inbox.close()
        with pytest.raises(InboxClosed):
            sending.result(SECONDS)
    assert (inbox.take(5, wait_seconds=SECONDS), inbox.take(5, wait_seconds=SECONDS)) == ([1], [])
    assert not inbox.offer(3, 1)


def test_a_coroutine_waits_for_room_without_a_blocked_loop() -> None:
    inbox: Inbox[int] = Inbox(max_items=1, max_bytes=100)

    async def send() -> None:
        for n in range(50):
            await asyncio.to_thread(inbox.put, n, 1)

    loop = LoopThread("test")
    sending = loop.start(send())
    taken = inbox.take(1, wait_seconds=SECONDS)
    loop.run(nothing(), timeout_seconds=SECONDS)
    while len(taken) < 50:
        taken += inbox.take(1, wait_seconds=SECONDS)
    sending.result(SECONDS)
    assert taken == list(range(50))
    loop.close()


async def nothing() -> None:
    return None


async def wait(ended: threading.Event) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()


def test_a_closed_loop_cancels_its_tasks_and_starts_nothing_more() -> None:
    loop, cancelled = LoopThread("test"), threading.Event()
    waiting = loop.start(wait(cancelled))
    loop.run(nothing(), timeout_seconds=SECONDS)
    loop.close()
    loop.close()
    assert cancelled.wait(SECONDS)
    assert waiting.cancelled() or waiting.exception(SECONDS) is not None
    with pytest.raises(InboxClosed):
        loop.start(nothing())


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    loop, cancelled = LoopThread("test"), threading.Event()
    with pytest.raises(TimeoutError):
        loop.run(wait(cancelled), timeout_seconds=0.01)
    assert cancelled.wait(SECONDS)
    loop.close()


def test_a_coroutine_that_nothing_else_refers_to_is_not_collected() -> None:
    loop, ended = LoopThread("test"), threading.Event()
    loop.start(wait(ended))
    loop.run(nothing(), timeout_seconds=SECONDS)
    gc.collect()
    loop.run(nothing(), timeout_seconds=SECONDS)
    assert not ended.is_set()
    loop.close()
    assert ended.wait(SECONDS)
