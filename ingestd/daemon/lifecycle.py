"""`ingestd run`: from start-up to the last commit, in one task group."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from importlib.metadata import version

from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.daemon.assembly import Assembly, assembled
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.server import ControlServer
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.failures import mirror_failures_alone
from ingestd.daemon.heartbeat import Heartbeat
from ingestd.daemon.shutdown import Shutdown
from ingestd.daemon.signals import reload_signal, stop_signals
from ingestd.process.notify import Notifier
from ingestd.process.supervision import Run
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import DaemonReady, DaemonStopped, StartDelayed, StopRequested

_OPEN_AGAIN_SECONDS = 3.0
"""How often a state file that cannot be opened now is tried again."""


async def run(configuration: Configuration, *, emit: Emit, notifier: Notifier) -> None:
    """Read and deliver until SIGTERM or SIGINT, then drain and return.

    To drain is: nothing new is read, requests in flight end, what was settled is acknowledged to its source, the state
    file is closed. Ten seconds after the signal the process has ended, whatever hangs; `Shutdown` sees to that.

    While the state file cannot be written the daemon runs on: it delivers, and reads again when there is room.

    Raises:
        MirrorError: the state file is unusable: damaged, of a newer program, or not for this account.
        BaseExceptionGroup: a part failed in a way that its rules exclude.
    """
    stopping = Shutdown(emit=emit, overrun=ExitCode.DONE)
    beat = Heartbeat(notifier, emit=emit)

    def tell(event: Event) -> None:
        emit(event)
        beat.changed()

    reload_asked = asyncio.Event()
    with stop_signals(stopping.ask), reload_signal(reload_asked.set), mirror_failures_alone():
        async with AsyncExitStack() as stack:
            assembly = await _assembled_in_time(configuration, stack, beat, stopping, tell)
            if assembly is None:
                emit(StopRequested(signal=stopping.signal))
                return
            supervise = assembly.part_supervisor
            await supervise.forget_failures()
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(
                    supervise("heartbeat", lambda: beat.run(lambda: _numbers(assembly))), name="heartbeat"
                )
                reloading = group.create_task(
                    supervise("reload", lambda: _reload(assembly, reload_asked)), name="reload"
                )
                await _serve(assembly, group, beat, stopping, emit)
                reloading.cancel()
                beating.cancel()
            pending = await asyncio.to_thread(assembly.mirror.status.pending)
            stopping.step = "closing the sources and the state file"
        emit(DaemonStopped(seconds=round(stopping.done(), 3), pending=pending))


async def _assembled_in_time(
    configuration: Configuration, stack: AsyncExitStack, beat: Heartbeat, stopping: Shutdown, emit: Emit
) -> Assembly | None:
    """Assemble the daemon as soon as the state file can be opened; None: a stop was requested before that.

    A disk that is full at the start has room again some day, and a service manager that has given up would not notice.
    """
    sentence = ""
    while True:
        try:
            return await stack.enter_async_context(assembled(configuration, emit=emit))
        except MirrorFull as error:
            if str(error) != sentence:
                sentence = str(error)
                emit(StartDelayed(sentence=sentence))
                beat.ready(f"Waits: {sentence}")
        beat.alive()
        try:
            async with asyncio.timeout(_OPEN_AGAIN_SECONDS):
                await stopping.asked.wait()
        except TimeoutError:
            continue
        return None


async def _serve(assembly: Assembly, group: asyncio.TaskGroup, beat: Heartbeat, stopping: Shutdown, emit: Emit) -> None:
    emit(await asyncio.to_thread(_ready, assembly))
    beat.ready(await asyncio.to_thread(_numbers, assembly))
    supervising = group.create_task(assembly.supervisor.run(), name="supervisor")

    def start(part: str, run: Run) -> asyncio.Task[None]:
        return group.create_task(assembly.part_supervisor(part, run), name=part)

    perform, state = assembly.performer.perform, assembly.configuration.settings.state
    delivering = start("delivery", assembly.dispatcher.run)
    scheduling = start("schedule", assembly.schedule.run)
    aside = [
        start("control socket", ControlServer(state, perform=perform, emit=emit).run),
        start("limits of what is rejected", assembly.bounds.run),
        start("drift checks", assembly.rounds.run),
        start("drift schedule", assembly.drift_schedule.run),
        start("ownership", lambda: assembly.ownership.run(assembly.supervisor.wake)),
    ]

    await stopping.asked.wait()
    emit(StopRequested(signal=stopping.signal))
    beat.stopping("Draining: requests in flight end, nothing new is read.")

    stopping.step = "ending the requests in flight"
    scheduling.cancel()
    for task in aside:
        task.cancel()
    for reader in assembly.readers:
        reader.stop()
    delivering.cancel()
    await asyncio.wait([delivering])
    stopping.step = "telling the sources what was settled"
    await assembly.supervisor.acknowledge()
    stopping.step = "ending the passes over the sources"
    supervising.cancel()
    await asyncio.wait([supervising])


async def _reload(assembly: Assembly, asked: asyncio.Event) -> None:
    """Reload each time SIGHUP asks for it; until cancelled."""
    while True:
        await asked.wait()
        asked.clear()
        await assembly.reloader.reload(by="SIGHUP")


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
    """The status line: how much waits and was rejected, and which sinks are in trouble. Cheap, however large the state."""
    mirror = assembly.mirror.status
    try:
        waiting = f"{mirror.pending()} waiting, {mirror.rejected()} rejected."
    except MirrorError as error:  # the heartbeat must not end with a read that fails
        waiting = f"the state file cannot be read: {error}"
    troubles = [str(report) for report in assembly.dispatcher.report() if report.sentence]
    parts = [f"{len(assembly.readers)} pipelines, {waiting}", assembly.mirror.unwritable, *troubles]
    return " ".join(part for part in parts if part)
