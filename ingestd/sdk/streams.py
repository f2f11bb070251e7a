"""Tools for connectors that receive messages: an inbox of limited size, and a thread with an event loop.

A library calls the connector when a message arrives. The call puts the message into an `Inbox`; `Connector.read` takes it out.
If the inbox is full, the call waits. Then the library stops reading from its connection, and the sender keeps the messages.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_END_SECONDS = 1.5
"""The maximum wait for the tasks of a loop that is closed. A source must stop within 2 seconds."""


class WakeCall:
    """The function that a library calls when data has arrived. A call has no effect while the source is not watched."""

    def __init__(self) -> None:
        self._wake: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        """Request a reading of the source. Thread-safe."""
        self._wake()

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        """Pass calls on to ``wake`` while the context is open: see `ingestd.sdk.Watches`."""
        self._wake = wake
        try:
            yield
        finally:
            self._wake = lambda: None


class InboxClosed(Exception):
    """The inbox accepts no more messages, because the source ends."""


class Inbox(Generic[T]):
    """A queue of messages from the receiving thread to the reading thread. Thread-safe.

    It holds at most ``max_items`` messages, with at most ``max_bytes`` in total; an empty inbox also accepts a larger message.
    ``wake`` is called when a message arrives in an empty inbox, after the lock is released: see `ingestd.sdk.Watches`.
    """

    def __init__(self, *, max_items: int, max_bytes: int, wake: Callable[[], None] = lambda: None) -> None:
        if max_items < 1 or max_bytes < 1:
            raise ValueError("An inbox has room for at least one message and one byte.")
        self._max_items = max_items
        self._max_bytes = max_bytes
        self.wake = wake
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._dropped = 0
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: T, size: int, *, timeout_seconds: float | None = None) -> bool:
        """Add a message of ``size`` bytes; wait while there is no room. Return False after ``timeout_seconds`` without room.

        In a coroutine, use ``await asyncio.to_thread(inbox.put, message, size)``. To keep the order, use it in one task only.

        Raises:
            InboxClosed: the source ends; nothing was added.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or self._has_room(size), timeout_seconds):
                return False
            was_empty = self._add(item, size)
        if was_empty:
            self.wake()
        return True

    def offer(self, item: T, size: int) -> bool:
        """Add a message if there is room, else count it as `dropped` and return False. For sources that can't wait."""
        with self._changed:
            if self._closed or not self._has_room(size):
                self._dropped += 1
                return False
            was_empty = self._add(item, size)
        if was_empty:
            self.wake()
        return True

    def take(
        self, max_items: int, *, wait_seconds: float = 0.0, alike: Callable[[T, T], bool] = lambda _, __: True
    ) -> list[T]:
        """Return up to ``max_items`` messages in order; wait up to ``wait_seconds`` for the first message, or until `close`.

        All returned messages are ``alike`` to the first message; the result ends before the first message that is not.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, wait_seconds)
            taken: list[tuple[T, int]] = []
            while self._items and len(taken) < max_items and (not taken or alike(taken[0][0], self._items[0][0])):
                taken.append(self._items.popleft())
            self._bytes -= sum(size for _, size in taken)
            if taken:
                self._changed.notify_all()
        return [item for item, _ in taken]

    def close(self) -> None:
        """Accept no more messages. Callers that wait in `put` get `InboxClosed`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        """Return the number of messages."""
        with self._changed:
            return len(self._items)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        with self._changed:
            return self._closed

    @property
    def dropped(self) -> int:
        """The number of messages that `offer` could not add."""
        with self._changed:
            return self._dropped

    def _has_room(self, size: int) -> bool:
        return not self._items or (len(self._items) < self._max_items and self._bytes + size <= self._max_bytes)

    def _add(self, item: T, size: int) -> bool:
        """Add a message and return whether the inbox was empty."""
        if self._closed:
            raise InboxClosed("The source ends, so it takes no more messages.")
        self._items.append((item, size))
        self._bytes += size
        self._changed.notify_all()
        return len(self._items) == 1


class LoopThread:
    """An event loop in its own thread, for libraries that offer only coroutines. The thread does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._closed = False
        self._running: set[Future[Any]] = set()
        """References that keep the tasks alive, because a loop has only weak references to its tasks."""
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop and return its future. Thread-safe.

        Raises:
            InboxClosed: the loop was closed.
        """
        with self._lock:
            if self._closed:
                coroutine.close()
                raise InboxClosed("The source ends, so it starts nothing more.")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def run(self, coroutine: Coroutine[Any, Any, T], *, timeout_seconds: float) -> T:
        """Run a coroutine and return its result; cancel it after ``timeout_seconds``. Must not be called in the loop's thread.

        Raises:
            TimeoutError: the coroutine took too long.
            InboxClosed: the loop was closed.
        """
        future = self.start(coroutine)
        try:
            return future.result(timeout_seconds)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel all tasks and end the thread; wait at most 1.5 seconds. A second call has no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=_END_SECONDS))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
