"""One run of the simulated daemon: the real supervisor, dispatcher, client and control server, until a stop or a kill."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import httpx

from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts
from ingestd.client.writer import RisingWriter
from ingestd.core.address import SinkAddress
from ingestd.daemon.command_handler import CommandHandler
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import ConfigurationChanges
from ingestd.daemon.control.server import ControlServer
from ingestd.daemon.explanation import explain
from ingestd.daemon.part_supervisor import PartSupervisor
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.reconfigurer import Reconfigurer
from ingestd.daemon.reload import Reloader
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.dispatcher import Dispatcher
from ingestd.delivery.drift import DriftChecker
from ingestd.intake import Reader, SourcesRetried, SourceSupervisor
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.mirror.sqlite.failed_parts import FailedPartStore
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.supervision import KeepRunning
from ingestd.sdk import Connector
from ingestd.telemetry.event import Emit
from tests.simulation.configurations import configuration
from tests.simulation.loop import SimulatedLoop
from tests.simulation.service import READ_SECONDS
from tests.simulation.sources import DirectReader

EPOCH = 1_700_000_000.0


class _NotSimulated:
    """A part that only commands use which the simulation does not send: those of held runs and of cursors."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no simulated command uses {name}")


_NOT_SIMULATED: Any = _NotSimulated()


class _Shared(httpx.AsyncBaseTransport):
    """The transport of the simulation, which outlives the client."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._transport.handle_async_request(request)


class _Reconfigurable:
    """Replaces `ingestd.daemon.reconfigurer.Reconfigurer`: lanes and checks then use another API key."""

    def __init__(
        self,
        create: Callable[[str], ServiceClient],
        dispatcher: Dispatcher,
        checker: DriftChecker,
        connectors: Collection[Connector],
    ) -> None:
        self.configuration = configuration()
        self._create = create
        self._dispatcher = dispatcher
        self._checker = checker
        self._connectors = connectors

    async def apply(self, found: Configuration, changes: ConfigurationChanges) -> tuple[tuple[str, str], ...]:
        if changes.started or changes.ended:
            raise AssertionError("no simulated configuration changes pipelines")
        if changes.service:
            client = self._create(found.settings.service.api_key.get_secret_value())
            await self._dispatcher.use_service(client, self._dispatcher.limits)
            await self._checker.use_client(client, missing_sink="create")
        self.configuration = found
        return ()

    def retry(self) -> SourcesRetried:
        self._dispatcher.retry_now()
        for connector in self._connectors:
            connector.resume()
        return SourcesRetried(now=(), later={})


class Daemon:
    """Runs on its own loop. Requests while it is not running are ignored."""

    def __init__(
        self,
        loop: SimulatedLoop,
        *,
        readers: Sequence[Reader | DirectReader],
        mirror: DeliveryStore,
        drift: DriftStore,
        rejected: RejectedStore,
        state: Path,
        read_again: Callable[[], Configuration],
        failed_parts: FailedPartStore,
        transport: httpx.AsyncBaseTransport,
        emit: Emit,
        random_numbers: random.Random,
        limits: DeliveryLimits,
        writer: RisingWriter,
        now: Callable[[], float],
        stop: asyncio.Event,
        runs: IntakeStore = _NOT_SIMULATED,
        stored: Observer = _NOT_SIMULATED,
    ) -> None:
        self._loop = loop
        self._writer = writer
        self._now = now
        self._emit = emit
        self._random_numbers = random_numbers
        self._transport = transport
        self._readers = readers
        self._mirror = mirror
        self._drift = drift
        self._rejected = rejected
        self._state = state
        self._read_again = read_again
        self._failed_parts = failed_parts
        self._limits = limits
        self._stop = stop
        self._runs = runs
        self._stored = stored
        self.dispatcher: Dispatcher | None = None
        self.asked: set[asyncio.Task[object]] = set()

    def start(self) -> None:
        """Run in a task."""
        self.task: asyncio.Task[None] = self._loop.create_task(self.run(), name="daemon")

    def may_send(self, sink: SinkAddress) -> bool:  # noqa: ARG002 - a standby decides by the sink
        """Return whether a sink may get entries."""
        return True

    def start_beside(self, group: asyncio.TaskGroup, supervise: KeepRunning) -> list[asyncio.Task[None]]:  # noqa: ARG002
        """Start the parts that only some daemons have; they are cancelled after all other parts."""
        return []

    def wake(self, sink: int) -> None:
        """Notify the dispatcher of a pending entry."""
        if self.dispatcher is not None:
            self._loop.call_soon(self.dispatcher.wake, sink)

    def stop(self) -> None:
        """Begin to stop."""
        self._loop.call_soon(self._stop.set)

    def drain(self) -> asyncio.Task[object] | None:
        """Wait until nothing is pending, as `ingestd sync` does."""
        return self.ask(self.dispatcher.drain) if self.dispatcher is not None else None

    def ask(self, call: Callable[[], Coroutine[Any, Any, object]]) -> asyncio.Task[object]:
        """Execute a command."""
        task = self._loop.create_task(call(), name="asked")
        self.asked.add(task)
        return task

    async def run(self) -> None:
        """Run the parts, as `ingestd.daemon.lifecycle` does."""
        now = self._now
        checker = self.checker = DriftChecker(
            mirror=self._mirror, drift=self._drift, client=self._client("simulated-key-1"), emit=self._emit
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(checker.aclose)
            supervise = PartSupervisor(self._failed_parts, emit=self._emit, now=now, random=self._random_numbers.random)
            supervisor = self.supervisor = SourceSupervisor(
                self._readers,  # type: ignore[arg-type]  # a direct reader has what a supervisor asks for
                emit=self._emit,
                random=self._random_numbers.random,
                keep_running=supervise,
            )
            dispatcher = self.dispatcher = Dispatcher(
                mirror=self._mirror,
                client=checker.client,
                emit=self._emit,
                now=now,
                random=self._random_numbers.random,
                on_acknowledged=supervisor.on_acknowledged,
                keep_running=supervise,
                limits=self._limits,
                clock=self._loop.time,
                may_send=self.may_send,
            )
            connectors = {reader.pipeline: reader.connector for reader in self._readers}
            reloader = Reloader(
                cast("Reconfigurer", _Reconfigurable(self._client, dispatcher, checker, connectors.values())),
                emit=self._emit,
                read=lambda _: self._read_again(),
            )
            handler = self.command_handler = self._command_handler(checker, supervisor, reloader)
            self.perform = handler.perform
            async with asyncio.TaskGroup() as group:
                beside = self.start_beside(group, supervise)
                server = ControlServer(self._state, perform=self.perform, emit=self._emit)
                supervising = group.create_task(supervisor.run(), name="supervisor")
                delivering = group.create_task(supervise("delivery", dispatcher.run), name="delivery")
                reloading = group.create_task(supervise("reload", reloader.run), name="reload")
                control = group.create_task(supervise("control socket", server.run), name="control socket")
                await self._stop.wait()
                control.cancel()
                reloading.cancel()
                await asyncio.wait([reloading])
                for reader in self._readers:
                    reader.stop()
                for task in self.asked:
                    task.cancel()
                delivering.cancel()
                await asyncio.wait([delivering])
                await supervisor.acknowledge()
                supervising.cancel()
                await asyncio.wait([supervising])
                for task in beside:
                    task.cancel()

    def _client(self, api_key: str) -> ServiceClient:
        return ServiceClient(
            url="http://service.test",
            api_key=api_key,
            client_id="simulation",
            transport=_Shared(self._transport),
            timeouts=Timeouts(read_seconds=READ_SECONDS),
            now=self._now,
            clock=self._loop.time,
            writer=self._writer,
        )

    def _command_handler(
        self, checker: DriftChecker, supervisor: SourceSupervisor, reloader: Reloader
    ) -> CommandHandler:
        """Build the handler, as `ingestd.daemon.assembly` does."""
        running = configuration()
        connectors = {reader.pipeline: reader.connector for reader in self._readers}
        return CommandHandler(
            pipelines=lambda: [one for one in running.settings.pipelines if one.name in connectors],
            rejected=self._rejected,
            runs=self._runs,
            stored=self._stored,
            control=_NOT_SIMULATED,
            cursors=_NOT_SIMULATED,
            checker=checker,
            request_reading=lambda name: supervisor.remap(name, now=True),
            explain=lambda request: explain(connectors, request),
            status=_NOT_SIMULATED,
            sources=lambda: SourceNotices(notices=tuple(supervisor.notices())),
            reloader=reloader,
            emit=self._emit,
        )

    def description(self) -> list[str]:
        """Describe the state of the lanes and what every task waits for."""
        lanes = [str(report) for report in self.dispatcher.report()] if self.dispatcher is not None else []
        return [*lanes, *_waits(self._loop)]


def _waits(loop: SimulatedLoop) -> list[str]:
    found: list[str] = []
    for task in sorted(asyncio.all_tasks(loop), key=hash):
        inner: object = task.get_coro()
        where = "?"
        while inner is not None:
            frame = getattr(inner, "cr_frame", None)
            if frame is None:
                break
            if frame.f_globals.get("__name__", "").startswith("ingestd.") or where == "?":
                where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            inner = getattr(inner, "cr_await", None)
        found.append(f"{task.get_name()} waits in {where}")
    return found
