"""`ingestd run`: from start-up to the last commit, in one task group."""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import version

from ingestd.daemon.beat import Beat
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.server import ControlServer
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.failures import mirror_failures_alone
from ingestd.daemon.signals import stop_signals
from ingestd.daemon.stopping import Stopping
from ingestd.daemon.wiring import Assembly, assembled
from ingestd.process.notify import Notifier
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.daemon import DaemonReady, DaemonStopped, StopRequested


async def run(configuration: Configuration, *, emit: Emit, notifier: Notifier) -> None:
    """Read and deliver until SIGTERM or SIGINT, then drain and return.

    To drain is: nothing new is read, requests in flight end, what was settled is acknowledged to its source, the state
    file is closed. Ten seconds after the signal the process has ended, whatever hangs; `Stopping` sees to that.

    Raises:
        MirrorError: the state file can't be used, or became unusable.
        BaseExceptionGroup: a part failed in a way that its rules exclude.
    """
    stopping = Stopping(emit=emit, overrun=ExitCode.DONE)
    beat = Beat(notifier, emit=emit)

    def tell(event: Event) -> None:
        emit(event)
        beat.changed()

    with stop_signals(stopping.ask), mirror_failures_alone():
        async with assembled(configuration, emit=tell) as assembly:
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(beat.run(lambda: _numbers(assembly)), name="beat")
                await _serve(assembly, group, beat, stopping, emit)
                beating.cancel()
            pending = await asyncio.to_thread(assembly.mirror.status.pending)
            stopping.step = "closing the sources and the state file"
        emit(DaemonStopped(seconds=round(stopping.done(), 3), pending=pending))


async def _serve(assembly: Assembly, group: asyncio.TaskGroup, beat: Beat, stopping: Stopping, emit: Emit) -> None:
    emit(await asyncio.to_thread(_ready, assembly))
    beat.ready(await asyncio.to_thread(_numbers, assembly))
    supervising = group.create_task(assembly.supervisor.run(), name="supervisor")
    delivering = group.create_task(assembly.dispatcher.run(), name="dispatcher")
    scheduling = group.create_task(assembly.schedule.run(), name="schedule")
    perform, state = assembly.performer.perform, assembly.configuration.settings.state
    aside = [
        group.create_task(ControlServer(state, perform=perform, emit=emit).run(), name="control"),
        group.create_task(assembly.bounds.run(), name="bounds"),
        group.create_task(assembly.rounds.run(), name="drift"),
        group.create_task(assembly.drift_schedule.run(), name="drift schedule"),
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
    return " ".join([
        f"{len(assembly.readers)} pipelines, {mirror.pending()} waiting, {mirror.rejected()} rejected.",
        *(str(report) for report in assembly.dispatcher.report() if report.sentence),
    ])  # fmt: skip
