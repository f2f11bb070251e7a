"""An event loop without sockets, threads or a clock: seeded, so that a run can be repeated callback by callback.

The ready callbacks run in random order. Time advances only when nothing is ready, and sometimes between two callbacks, so that
a timer can expire between any two of them. Work for threads runs on the loop; its start and the arrival of its result are
separate callbacks. Work of pausing executors runs in threads, one at a time, and everything else may run while it pauses.
"""

# Callbacks take any arguments and return any value.
# mypy: disable-error-code="override"

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import inspect
import math
import random
import warnings
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, TypeVar

from tests.simulation.pausable_thread import PausableThread

T = TypeVar("T")

End: TypeAlias = Literal["done", "time", "asleep"]
"""done: the condition holds · time: the deadline is reached · asleep: nothing is ready and no timer runs."""

DEFAULT_THREADS = "default"

_SLOW_STEP_SHARE = 0.05
_SLOW_STEP_SECONDS = 0.02
_MOST_DEFAULT_THREADS = 8
_MOST_STEPS_AT_ONCE = 200_000


class NeverIdle(AssertionError):
    """Callbacks follow each other without end, and time does not advance."""


class _Numbered:
    """Hashes by a serial number, so that sets are iterated in the same order in every run."""

    number: int

    def __hash__(self) -> int:
        return self.number


class _Future(_Numbered, asyncio.Future[Any]):
    __hash__ = _Numbered.__hash__


class _Task(_Numbered, asyncio.Task[Any]):
    # The constructor hashes the task, so it needs its number before.
    def __new__(cls, *_: Any, loop: SimulatedLoop, **__: Any) -> Self:
        task = super().__new__(cls)
        task.number = loop.next_number()
        return task

    __hash__ = _Numbered.__hash__


@dataclass(slots=True)
class _Threads:
    """The jobs of one executor; at most ``most`` of them run at a time."""

    most: int
    pauses: bool
    running: int = 0
    jobs: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = field(default_factory=deque)


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks in an order drawn from ``random_numbers``; its clock starts at ``now`` seconds.

    ``thread_seconds``: the longest delay before a thread's work starts, and before its result arrives. ``pausing``: the name
    prefixes of threads that may pause; `DEFAULT_THREADS` is that of `asyncio.to_thread`. ``listener``: creates the server's
    protocol for a new connection to the only Unix socket; None if nothing listens.
    """

    def __init__(
        self, random_numbers: random.Random, *, now: float, thread_seconds: float, pausing: Collection[str] = ()
    ) -> None:
        self._ended = True
        super().__init__()
        self._ended = False
        self._random_numbers = random_numbers
        self._thread_seconds = thread_seconds
        self._now = now
        self._number = 0
        self._callbacks: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._threads: dict[object, _Threads] = {}
        self._pausing = pausing
        self._paused: list[PausableThread] = []
        self.listener: Callable[[], asyncio.Protocol] | None = None
        self.failures: list[str] = []
        self.steps = 0

    # ------------------------------------------------------------------------------------------------ running

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> End:
        """Run callbacks until ``done``, which is evaluated whenever nothing is ready, or until the clock shows ``until``."""
        with _running(self):
            at, steps = self._now, 0
            while True:
                self._collect_due()
                if self._callbacks:
                    self._step()
                    steps = steps + 1 if self._now == at else 0
                    at = self._now
                    if steps > _MOST_STEPS_AT_ONCE:
                        raise NeverIdle(f"{steps} callbacks without a pause")
                elif done():
                    return "done"
                elif not self._timers:
                    return "asleep"
                elif self._timers[0][0] > until:
                    self._now = max(self._now, until)
                    return "time"
                else:
                    self._now = max(self._now, self._timers[0][0])

    @property
    def next_at(self) -> float:
        """When something happens next; infinity if nothing is ready and no timer runs."""
        if self._callbacks:
            return self._now
        return max(self._now, self._timers[0][0]) if self._timers else math.inf

    def step(self) -> None:
        """Run one callback, at the time of the next timer if nothing is ready."""
        with _running(self):
            self._now = max(self._now, self.next_at)
            self._collect_due()
            if self._callbacks:
                self._step()

    def _step(self) -> None:
        ready = self._callbacks
        chosen = int(self._random_numbers.random() * len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        handle = ready.pop()
        if not handle.cancelled():
            handle._run()
        self.steps += 1
        if self._random_numbers.random() < _SLOW_STEP_SHARE:
            self._now += self._random_numbers.random() * _SLOW_STEP_SECONDS

    def _collect_due(self) -> None:
        while self._timers and (self._timers[0][0] <= self._now or self._timers[0][2].cancelled()):
            _, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                self._callbacks.append(handle)

    def skip_to(self, now: float) -> None:
        """Set the clock of a loop that is asleep."""
        self._now = max(self._now, now)

    def kill(self) -> list[asyncio.Task[Any]]:
        """End as a killed process does: run nothing any more, no clean-up either. Return the tasks that existed."""
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        self._callbacks.clear()
        self._timers.clear()
        self._threads.clear()
        self.close()
        for thread in self._paused:
            thread.kill()
        self._paused.clear()
        with warnings.catch_warnings(action="ignore"):
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _discard(task.get_coro())
        return tasks

    def finish_threads(self) -> None:
        """Finish the work of threads, as an executor's shutdown does."""
        for thread in self._paused:
            while not thread.resume():
                pass
        self._paused.clear()
        for threads in self._threads.values():
            while threads.jobs:
                future, call = threads.jobs.popleft()
                if not future.cancelled():
                    call()

    # ------------------------------------------------------------------------------------ what asyncio asks for

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._ended

    def is_closed(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._ended = True

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future(loop=self)
        future.number = self.next_number()
        return future

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        return _Task(coro, loop=self, name=name, context=context)

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._callbacks.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self.next_number(), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to count: a cancelled timer is dropped when its time comes."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')} {context.get('exception')!r}")

    async def create_unix_server(self, protocol_factory: Any, path: Any = None, **_: Any) -> Any:  # noqa: ARG002 - there is one
        self.listener = protocol_factory
        await asyncio.sleep(0)  # it listens already, as a real one does
        return _Listener(self)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        # The key is the executor, not its id: a new executor may reuse the id of a deleted one.
        known = executor or DEFAULT_THREADS
        if known not in self._threads:
            most = executor._max_workers if isinstance(executor, ThreadPoolExecutor) else _MOST_DEFAULT_THREADS
            prefix = DEFAULT_THREADS if executor is None else getattr(executor, "_thread_name_prefix", "")
            pauses = prefix in self._pausing
            self._threads[known] = _Threads(most=most, pauses=pauses)
        threads = self._threads[known]
        threads.jobs.append((future, lambda: func(*args)))
        self._start_threads(threads)
        return future

    def _start_threads(self, threads: _Threads) -> None:
        while threads.jobs and threads.running < threads.most:
            threads.running += 1
            self._call_later_at_random(self._work, threads)

    def _work(self, threads: _Threads) -> None:
        if not threads.jobs:
            threads.running -= 1
            return
        future, call = threads.jobs.popleft()
        if future.cancelled():
            self._thread_is_free(threads)
        elif threads.pauses:
            thread = PausableThread(call)
            self._paused.append(thread)
            self._resume(threads, thread, future)
        else:
            try:
                result = call()
            except Exception as error:  # noqa: BLE001 - the caller that awaits the result handles it
                self._call_later_at_random(_fail, future, error)
            else:
                self._call_later_at_random(_succeed, future, result)
            self._thread_is_free(threads)

    def _resume(self, threads: _Threads, thread: PausableThread, future: asyncio.Future[Any]) -> None:
        if not thread.resume():
            self._call_later_at_random(self._resume, threads, thread, future)
            return
        self._paused.remove(thread)
        if thread.error is not None:
            self._call_later_at_random(_fail, future, thread.error)
        else:
            self._call_later_at_random(_succeed, future, thread.result)
        self._thread_is_free(threads)

    def _thread_is_free(self, threads: _Threads) -> None:
        threads.running -= 1
        self._start_threads(threads)

    def _call_later_at_random(self, callback: Callable[..., object], *args: Any) -> None:
        if self._random_numbers.random() < 0.5:
            self.call_soon(callback, *args)
        else:
            self.call_later(self._random_numbers.random() * self._thread_seconds, callback, *args)


class _Listener:
    """Replaces an `asyncio.Server` for a caller that only closes it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def close(self) -> None:
        self._loop.listener = None


class _running:  # noqa: N801 - used like a function
    """Makes a loop the running one for `asyncio.get_running_loop`."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._before: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> None:
        self._before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._loop)

    def __exit__(self, *_: object) -> None:
        asyncio._set_running_loop(self._before)


def run_inline(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise AssertionError("it waits for something")


def _discard(coroutine: Any) -> None:
    """Close the tasks of a killed process; their clean-up finds no running loop."""
    # A clean-up that waits has to be closed, too; otherwise the garbage collector does it later, with a warning.
    while inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
        with contextlib.suppress(BaseException):
            coroutine.close()


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
