"""The event loop of the daemon: uvloop, because a request needs half as much CPU time as on the standard library's loop.

`run_to_end` also changes the memory settings of the process for long work. `run_in_thread` runs in the process of another
program, and changes no setting.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import uvloop

T = TypeVar("T")

# By default, Python searches for reference cycles after 700 new objects: every few dozen requests. It finds almost no cycles.
_COLLECTED_OBJECTS: Final = 20_000
_SWITCH_SECONDS: Final = 0.0005
"""The interval after which a thread releases the interpreter. Python's default, 5 ms, is half of the time to deliver a file."""


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, on uvloop."""
    share_heap()
    with _rare_collections(), _short_turns(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def run_in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a thread with its own loop, because in a notebook the calling thread already has a running loop.

    A KeyboardInterrupt in the calling thread cancels the coroutine, and is raised after the coroutine has ended.
    """
    started = threading.Event()
    cancel: list[Callable[[], object]] = []

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if task is not None:
            cancel.append(partial(loop.call_soon_threadsafe, task.cancel))
        started.set()
        return await work()

    def run() -> T:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(cancellable())
        finally:
            started.set()

    with ThreadPoolExecutor(1, thread_name_prefix="ingestd") as pool:
        running = pool.submit(run)
        try:
            return running.result()
        except KeyboardInterrupt:
            started.wait()
            for call in cancel:
                with suppress(RuntimeError):  # the work has ended, so the loop is closed
                    call()
            raise


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Search for reference cycles less often while the context is open."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECTED_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Shorten the time that threads wait for each other while the context is open."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h."""


def share_heap() -> bool:
    """Let all threads share one heap of the C library until the process ends. Call this function before other threads start.

    By default, each thread has its own heap, which keeps freed memory (decision record 0026). Return False if the library does
    not have the setting.
    """
    try:
        choose = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    return bool(choose(_ARENA_MAX, 1))
