"""The lock around the only writer is fair."""

from __future__ import annotations

import threading

from ingestd.mirror.sqlite.state_file.write_lock import WriteLock


def test_threads_get_the_lock_in_the_order_of_their_requests() -> None:
    lock = WriteLock()
    served: list[int] = []

    def take(number: int) -> None:
        with lock:
            served.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(5)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            _until_waiting(lock, number + 1)
    for thread in threads:
        thread.join(30)
    assert served == [0, 1, 2, 3, 4]
    assert lock.waiting == 0


def test_a_thread_that_takes_the_lock_repeatedly_lets_a_waiting_thread_take_it() -> None:
    lock = WriteLock()
    order: list[str] = []

    def other() -> None:
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        _until_waiting(lock, 1)
    for _ in range(3):
        with lock:
            order.append("loop")
    thread.join(30)
    assert order == ["other", "loop", "loop", "loop"]


def _until_waiting(lock: WriteLock, count: int) -> None:
    """Wait until a thread waits for the lock; only the lock itself shows this."""
    looked = threading.Event()
    while lock.waiting < count:
        looked.wait(0.001)
