"""The lifecycle of `ingestd run`, from start-up to the last commit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.core.phrases import counted
from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.server import ControlServer
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.heartbeat import Heartbeat
from ingestd.daemon.part_supervisor import mirror_failures_alone
from ingestd.daemon.reload import Reloader
from ingestd.daemon.shutdown import DRAIN_SECONDS, Shutdown
from ingestd.daemon.signals import reload_signal, stop_signals
from ingestd.process.notify import Notifier
from ingestd.process.supervision import Run
from ingestd.settings.listen import ListenSettings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import DaemonReady, DaemonStopped, StartDelayed, StopRequested

if TYPE_CHECKING:
    from ingestd.daemon.standby_phase import StandbyPhase

ServeListener: TypeAlias = Callable[[ListenSettings, Assembly], Coroutine[None, None, None]]

_OPEN_AGAIN_SECONDS = 3.0
"""Interval between attempts to open the state file."""

_SINKS_SECONDS = 600.0
"""The interval at which the daemon checks that the service still has the sinks. A check takes one request for each sink."""


async def run(
    configuration: Configuration,
    *,
    emit: Emit,
    notifier: Notifier,
    serve: ServeListener,
    standby: StandbyPhase | None = None,
) -> None:
    """Read and deliver until SIGTERM or SIGINT, then drain and return.

    Draining: reading stops, requests in flight end, delivered partitions are acknowledged to their sources, and the state
    file is closed. `Shutdown` ends the process within ten seconds after the signal, even if a part hangs.

    If the state file cannot be written, the daemon keeps delivering. It reads sources again when there is space.

    ``serve`` serves the listener, if one is configured, until cancelled. With ``standby``, the daemon waits until it is active,
    and ends when another daemon takes over.

    Raises:
        MirrorError: the state file is damaged, of a newer version, or not accessible for this account.
        BaseExceptionGroup: a part failed with an unexpected error.
    """
    shutdown = Shutdown(
        emit=emit,
        overrun=ExitCode.DONE,
        seconds=DRAIN_SECONDS + (standby.leave_seconds if standby is not None else 0.0),
    )
    heartbeat = Heartbeat(notifier)

    def emit_and_update(event: Event) -> None:
        emit(event)
        heartbeat.changed()

    reload_asked = asyncio.Event()
    with stop_signals(shutdown.ask), reload_signal(reload_asked.set), mirror_failures_alone():
        async with AsyncExitStack() as stack:
            if standby is not None and not await standby.wait(shutdown, heartbeat, stack):
                emit(StopRequested(signal=shutdown.signal))
                return
            assembly = await _assemble_when_possible(
                configuration, stack, heartbeat, shutdown, emit_and_update, standby=standby
            )
            if assembly is None:
                emit(StopRequested(signal=shutdown.signal))
                return
            supervise = assembly.part_supervisor
            await supervise.forget_failures()
            async with asyncio.TaskGroup() as group:
                heartbeat_task = group.create_task(
                    supervise("heartbeat", lambda: heartbeat.run(lambda: _numbers(assembly))), name="heartbeat"
                )
                beside = [heartbeat_task]
                if standby is not None:
                    beside.append(group.create_task(standby.attach(assembly, shutdown)(), name="standby"))
                await _serve(assembly, group, heartbeat, shutdown, emit, reload_asked=reload_asked, serve=serve)
                for task in beside:
                    task.cancel()
            pending = await asyncio.to_thread(assembly.mirror.status.pending)
            shutdown.step = "closing the sources and the state file"
        emit(DaemonStopped(seconds=round(shutdown.done(), 3), pending=pending))


async def _assemble_when_possible(
    configuration: Configuration,
    stack: AsyncExitStack,
    heartbeat: Heartbeat,
    shutdown: Shutdown,
    emit: Emit,
    *,
    standby: StandbyPhase | None,
) -> Assembly | None:
    """Assemble the daemon as soon as the state file can be opened. Return None if a stop is requested first.

    The wait covers a full disk at start-up. If the process ended instead, systemd would give up after a few restarts.
    """
    sentence = ""
    while True:
        try:
            active = standby.standby if standby is not None else None
            return await stack.enter_async_context(assemble(configuration, emit=emit, standby=active))
        except MirrorFull as error:
            if str(error) != sentence:
                sentence = str(error)
                emit(StartDelayed(sentence=sentence))
                heartbeat.ready(f"Waiting: {sentence}")
        heartbeat.alive()
        try:
            async with asyncio.timeout(_OPEN_AGAIN_SECONDS):
                await shutdown.asked.wait()
        except TimeoutError:
            continue
        return None


async def _serve(
    assembly: Assembly,
    group: asyncio.TaskGroup,
    heartbeat: Heartbeat,
    shutdown: Shutdown,
    emit: Emit,
    *,
    reload_asked: asyncio.Event,
    serve: ServeListener,
) -> None:
    emit(await asyncio.to_thread(_ready, assembly))
    supervising = group.create_task(assembly.supervisor.run(), name="supervisor")

    def start(part: str, run: Run) -> asyncio.Task[None]:
        return group.create_task(assembly.part_supervisor(part, run), name=part)

    perform, state = assembly.perform, assembly.configuration.settings.state
    delivering = start("delivery", assembly.dispatcher.run)
    scheduling = start("schedule", assembly.schedule.run)
    reloader = assembly.reloader
    reloader.on_begin = lambda: heartbeat.reloading("Reading the configuration again.")
    reloader.on_end = lambda: heartbeat.reloaded(reloader.refusal or "The configuration was read again.")
    reloading = [start("reload", reloader.run), start("SIGHUP", lambda: _reload_at(reload_asked, reloader))]
    control = ControlServer(state, perform=perform, emit=emit)
    side_tasks = [
        start("control socket", control.run),
        start("limits of rejections", assembly.retention.run),
        start("drift checks", assembly.drift_queue.run),
        start("drift schedule", assembly.drift_schedule.run),
        start("presence of sinks", lambda: _check_sinks(assembly)),
        start("ownership", lambda: assembly.ownership.run(assembly.supervisor.wake)),
    ]

    if (listen := assembly.configuration.settings.listen) is not None:
        side_tasks.append(start("listener", lambda: serve(listen, assembly)))
    await control.started.wait()  # so that a command after the start of the unit finds the daemon
    heartbeat.ready(await asyncio.to_thread(_numbers, assembly))

    await shutdown.asked.wait()
    emit(StopRequested(signal=shutdown.signal))
    heartbeat.stopping("Draining: requests in flight end, reading has stopped.")

    shutdown.step = "ending a reload"
    scheduling.cancel()
    for task in (*side_tasks, *reloading):
        task.cancel()
    # The reload must end first, because it may start readers and lanes. They are ended below.
    await asyncio.wait(reloading)
    shutdown.step = "ending the requests in flight"
    for reader in assembly.readers:
        reader.stop()
    delivering.cancel()
    await asyncio.wait([delivering])
    shutdown.step = "acknowledging delivered partitions to the sources"
    await assembly.supervisor.acknowledge()
    shutdown.step = "ending the passes over the sources"
    supervising.cancel()
    await asyncio.wait([supervising])


async def _check_sinks(assembly: Assembly) -> None:
    """Check periodically whether the service still has the sinks, until cancelled. Each lane also checks at its start."""
    while True:
        await asyncio.sleep(_SINKS_SECONDS)
        assembly.dispatcher.check_sinks()


async def _reload_at(asked: asyncio.Event, reloader: Reloader) -> None:
    """Reload after each SIGHUP, until cancelled. Signals during a reload cause one more reload."""
    while True:
        await asked.wait()
        asked.clear()
        await reloader.reload(by="SIGHUP")


def _ready(assembly: Assembly) -> DaemonReady:
    settings = assembly.configuration.settings
    return DaemonReady(
        version=version("ingestd"),
        pid=os.getpid(),
        configuration=str(assembly.configuration.path),
        state=str(settings.state),
        pipelines=len(settings.pipelines),
        pending=assembly.mirror.status.pending(),
    )


def _numbers(assembly: Assembly) -> str:
    """Return the status line: pending and rejected entries, and blocked sinks. The cost is independent of the state's size."""
    mirror = assembly.mirror.status
    try:
        counts = f"{mirror.pending()} pending, {mirror.rejected()} rejected."
    except MirrorError as error:  # a failed read must not end the heartbeat
        counts = f"the state file cannot be read: {error}"
    blocked = [str(report) for report in assembly.dispatcher.report() if report.sentence]
    parts = [
        f"{counted(len(assembly.readers), 'pipeline')}, {counts}",
        *assembly.notices.own(),
        *blocked,
    ]
    return " ".join(part for part in parts if part)
