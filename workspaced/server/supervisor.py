"""Start several workers, restart those that die, forward signals, and report the state of all."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from ingestd.process.logs import Level
from ingestd.process.notify import Notifier
from workspaced.core.clock import now_ms
from workspaced.server.admin import operators_server
from workspaced.server.descriptors import connection_capacity, descriptor_limit
from workspaced.server.http import DRAIN_SECONDS, listening
from workspaced.server.listeners import PortTaken, url_of
from workspaced.server.signals import signals_handled
from workspaced.server.worker import ALIVE, LEVELS, PORT, UNREADY, Assignment
from workspaced.server.worker_process import WorkerProcess
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import StorageUnusable
from workspaced.telemetry.exposition import build_family, exposition, level_families, process_families, worker_families
from workspaced.telemetry.levels import Levels

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 30.0
# A worker that ran so long was healthy: the pause after its death is the first pause again.
_HEALTHY_AFTER_SECONDS = 60.0
_START_ATTEMPTS = 3
_REQUEST_EVERY_SECONDS = 10.0
_HUNG_AFTER_SECONDS = 30.0
# More than a worker needs at most: for its requests, then its deliveries.
_KILL_AFTER_SECONDS = DRAIN_SECONDS + 8.0


class WorkersFailed(Exception):
    """The workers can't be kept running; the text is a sentence."""


@dataclass(slots=True, kw_only=True)
class _WorkerSlot:
    """One of the workers; after a death another process takes the slot."""

    name: str
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    worker: WorkerProcess | None = None
    deaths: int = 0

    @property
    def live(self) -> WorkerProcess | None:
        """Return the process that serves in this slot now."""
        worker = self.worker
        return worker if worker and worker.ready and worker.process.returncode is None else None


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Runs the workers. ``settings`` apply to each of them; ``held`` is the socket that reserves their port."""

    settings: WorkspacedSettings
    workers: int
    held: socket.socket
    admin: socket.socket | None
    notifier: Notifier
    announce: Callable[[str], None]
    log_level: Level
    _slots: list[_WorkerSlot] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: bool = False
    _restarts: int = 0
    _killed: bool = False
    _failure: Exception | None = None
    _metrics_folder: str = ""

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; the workers finish their requests. A second signal ends them at once.

        Raises:
            StorageUnusable: no worker can use this data.
            PortTaken: no worker can listen.
            WorkersFailed: they die right after each start, or had to be killed at the end.
        """
        log = structlog.get_logger()
        url = url_of(self.held)
        self._slots = [_WorkerSlot(name=str(number)) for number in range(self.workers)]
        async with AsyncExitStack() as stack:
            self._metrics_folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workspaced-metrics-"))
            stack.enter_context(signals_handled(self._stop))
            keeping = [asyncio.create_task(self._keep_running(slot)) for slot in self._slots]
            kept = asyncio.ensure_future(asyncio.wait(keeping))
            beginning = asyncio.create_task(self._all_ready())
            await _first_done(kept, beginning)
            if beginning.done() and not self._stopping.is_set():
                if self.admin:
                    await stack.enter_async_context(listening(operators_server(self), self.admin))
                self._begun = True
                self.announce(url)
                admin = url_of(self.admin) if self.admin else None
                log.info(
                    "service_listening",
                    url=url,
                    admin=admin,
                    data=str(self.settings.data),
                    workers=self.workers,
                    connections=self.workers
                    * connection_capacity(self.settings.limits.connections, descriptor_limit()),
                    open_files=descriptor_limit(),
                )
                self.notifier.ready(f"Listening on {url} with {self.workers} workers")
                watching = asyncio.create_task(self._watch())
                await _first_done(kept, watching)
                watching.cancel()
                await asyncio.wait([watching])
            beginning.cancel()
            await asyncio.gather(*keeping)
        if self._failure:
            raise self._failure
        if self._killed:
            raise WorkersFailed(
                f"A worker had not ended {_KILL_AFTER_SECONDS:.0f} s after it was asked to stop, and was killed."
            )
        log.info("service_stopped")

    async def unready(self) -> str | None:
        """Return why not all workers are ready; None if they are."""
        if self._stopping.is_set():
            return "The service is stopping."
        for slot in self._slots:
            if slot.live is None:
                return f"Worker {slot.name} is not running."
            response = await slot.live.channel.request(UNREADY, within=_REQUEST_EVERY_SECONDS)
            if response is None:
                return f"Worker {slot.name} does not respond."
            if response["reason"]:
                return str(response["reason"])
        return None

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics of all workers, dead ones included."""
        live = {slot.name: slot.live for slot in self._slots if slot.live}
        levels = Levels(reached=False)
        for worker in live.values():
            response = await worker.channel.request(LEVELS, within=_REQUEST_EVERY_SECONDS)
            if response is not None:
                levels = Levels(**response["levels"])
                break
        families = [
            build_family(self.settings.database_kind),
            *level_families(levels, now_ms=now_ms()),
            *worker_families(wanted=self.workers, live=len(live), restarts=self._restarts),
            *process_families({name: worker.process.pid for name, worker in live.items()}),
        ]
        counted = MultiProcessCollector(CollectorRegistry(), path=self._metrics_folder)  # type: ignore[no-untyped-call]
        return await asyncio.to_thread(exposition, [counted], families, accept=accept)

    def _stop(self, name: str) -> None:
        structlog.get_logger().info("service_stopping", signal=name)
        if not self._stopping.is_set():
            self._stopping.set()
            self.notifier.stopping("Finishing the requests under way")
            asyncio.get_running_loop().call_later(_KILL_AFTER_SECONDS, self._kill)
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.worker:
                slot.worker.send_signal(number)

    def _kill(self) -> None:
        if any(slot.worker and slot.worker.process.returncode is None for slot in self._slots):
            self._killed = True
            self._signal(signal.SIGKILL)

    def _fail(self, failure: Exception) -> None:
        """Stop all workers, because the service can't start."""
        self._failure = self._failure or failure
        self._stopping.set()
        self._signal(signal.SIGTERM)

    async def _all_ready(self) -> None:
        for slot in self._slots:
            await slot.begun.wait()

    async def _keep_running(self, slot: _WorkerSlot) -> None:
        """Run one worker after another until the service stops."""
        pause = 0.0
        while not self._stopping.is_set():
            begun = time.monotonic()
            worker = slot.worker = await self._start(slot)
            listening = asyncio.create_task(worker.listen(slot.begun.set))
            if self._stopping.is_set():  # the signal came while the process was created
                worker.send_signal(signal.SIGTERM)
            exit_code = await worker.process.wait()
            await listening
            worker.channel.close()
            mark_process_dead(worker.process.pid, self._metrics_folder)  # type: ignore[no-untyped-call]
            if self._stopping.is_set():
                return
            slot.deaths += 1
            healthy = time.monotonic() - begun >= _HEALTHY_AFTER_SECONDS
            pause = _FIRST_PAUSE_SECONDS if healthy or not pause else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            if not self._begun and (worker.failed or slot.deaths >= _START_ATTEMPTS):
                self._fail(_startup_failure(worker, exit_code))
                return
            self._restarts += 1
            structlog.get_logger().error(
                "worker_died",
                worker=slot.name,
                pid=worker.process.pid,
                ended=_describe_exit(exit_code),
                reason=worker.failed["failed"] if worker.failed else None,
                again_in_seconds=round(pause, 1),
            )
            await self._pause(pause)

    async def _start(self, slot: _WorkerSlot) -> WorkerProcess:
        host, port = self.held.getsockname()[:2]
        assignment = Assignment(name=slot.name, settings=self.settings, host=host, port=port, log_level=self.log_level)
        return await WorkerProcess.start(assignment, metrics_folder=self._metrics_folder)

    async def _pause(self, seconds: float) -> None:
        waiting = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([waiting], timeout=seconds)
        waiting.cancel()

    async def _watch(self) -> None:
        """Send the watchdog's heartbeat while all workers are ready; kill a worker that does not respond."""
        fed = self.notifier.watchdog_seconds
        every = min(fed / 3, _REQUEST_EVERY_SECONDS) if fed else _REQUEST_EVERY_SECONDS
        while not self._stopping.is_set():
            workers = [slot.live for slot in self._slots if slot.live]
            await asyncio.gather(*(worker.channel.request(ALIVE, within=every) for worker in workers))
            for worker in workers:
                if time.monotonic() - worker.channel.received_at > _HUNG_AFTER_SECONDS:
                    structlog.get_logger().error("worker_hangs", pid=worker.process.pid)
                    worker.send_signal(signal.SIGKILL)
            if fed:
                reason = await self.unready()
                if reason is None:
                    self.notifier.alive()
                elif not self._stopping.is_set():
                    structlog.get_logger().warning("service_not_ready", reason=reason)
                    self.notifier.status(reason)
            await self._pause(every)


def _startup_failure(worker: WorkerProcess, exit_code: int) -> Exception:
    if worker.failed is None:
        return WorkersFailed(
            f"The workers end right after they are started ({_describe_exit(exit_code)}). The log above has the reason. "
            f"They run {sys.executable}."
        )
    sentence = str(worker.failed["failed"])
    return PortTaken(sentence) if worker.failed["because"] == PORT else StorageUnusable(sentence)


def _describe_exit(exit_code: int) -> str:
    return f"by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"with exit code {exit_code}"


async def _first_done(*tasks: asyncio.Future[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
