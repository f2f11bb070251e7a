"""`ingestd sync`: one pass over every source, then delivery until nothing is pending."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import nullcontext

import msgspec

from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.part_supervisor import mirror_failures_alone
from ingestd.daemon.shutdown import DRAIN_SECONDS, Shutdown
from ingestd.daemon.signals import stop_signals
from ingestd.delivery.report import LaneReport
from ingestd.intake import PassReport
from ingestd.mirror.port import HeldRun
from ingestd.mirror.reports import PipelinePause
from ingestd.process.deferred_imports import complete_imports
from ingestd.schedule import boot_time
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sync.

    ``delivered``: entries written by this run. ``pending``: pending entries of all sinks, except entries of paused pipelines.
    ``rejected``: rejected records and entries of the selected pipelines, by this run or earlier runs. ``held``: held runs of
    the selected pipelines. ``paused``: selected pipelines that were not read because they are paused. ``stuck``: sinks with a
    blocker that a person must remove. ``interrupted``: a signal's name, ``timeout`` or empty.
    """

    passes: tuple[PassReport, ...]
    delivered: int
    pending: int
    rejected: int
    stuck: tuple[LaneReport, ...]
    interrupted: str
    held: tuple[HeldRun, ...] = ()
    paused: tuple[PipelinePause, ...] = ()

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        """Pipeline and sentence for each source, file or table that could not be read, without duplicates."""
        pairs = [
            (one.pipeline, sentence)
            for one in self.passes
            for sentence in (one.away, one.broken, *one.rejected)
            if sentence
        ]
        return tuple(dict.fromkeys(pairs))

    @property
    def exit_code(self) -> ExitCode:
        """The exit code by precedence: an unread source, pending entries, a held run or pause, rejections."""
        if any(one.away or one.broken for one in self.passes):
            return ExitCode.SOURCE_FAILED
        if self.pending or self.interrupted:
            return ExitCode.PENDING
        if self.held or self.paused:
            return ExitCode.HELD
        return ExitCode.REJECTED if self.rejected else ExitCode.DONE


async def sync(
    configuration: Configuration,
    names: Sequence[str],
    *,
    timeout_seconds: float | None,
    emit: Emit,
    passes: Sequence[PassReport] | None = None,
    own_process: bool = True,
) -> SyncReport:
    """Read the sources of ``names`` once, wait for files that are about to be stable, and deliver all pending entries.

    ``passes``: the reports of passes that are already stored. With such reports, no source is read, and no sink is compared
    with its sources. ``own_process`` False: the sync runs within another program. It then handles no signal, and no deadline
    ends the process; cancel the sync instead.

    The sync ends early at a signal, after ``timeout_seconds``, or if all pending entries are blocked until a person acts.
    For example, the service refuses the key. Requests in flight end normally, and delivered partitions are acknowledged.

    Raises:
        MirrorError: the state file can't be used, or became unusable.
    """
    delivered = 0
    if timeout_seconds is not None:
        complete_imports()  # the timeout excludes the imports

    def count(event: Event) -> None:
        nonlocal delivered
        if isinstance(event, EntriesDelivered):
            delivered += event.entries
        emit(event)

    shutdown = Shutdown(emit=emit, overrun=ExitCode.PENDING, seconds=DRAIN_SECONDS if own_process else None)
    reports: list[PassReport] = list(passes or ())
    stuck: list[LaneReport] = []
    with stop_signals(shutdown.ask) if own_process else nullcontext(), mirror_failures_alone():
        until = boot_time() + timeout_seconds if timeout_seconds is not None else math.inf
        async with assemble(configuration, emit=count, until=until) as assembly:
            if timeout_seconds is not None:
                assembly.client.prepare()
            async with asyncio.TaskGroup() as group:
                delivering = group.create_task(assembly.dispatcher.run(), name="dispatcher")
                working = group.create_task(_work(assembly, names, reports, stuck, read=passes is None), name="sync")
                asked = group.create_task(shutdown.asked.wait(), name="signal")
                await asyncio.wait([working, asked], timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
                if not working.done():
                    shutdown.ask("timeout")
                    stuck = [lane for lane in assembly.dispatcher.report() if lane.status == "paused"]
                shutdown.step = "ending the passes and the requests in flight"
                for reader in assembly.readers:
                    reader.stop()
                for task in (working, asked, delivering):
                    task.cancel()
            await assembly.supervisor.acknowledge()
            await assembly.retention.apply()
            status = assembly.mirror.status
            rejected = sum(one.rejected for one in status.pipelines() if one.name in names)
            pauses = status.pauses()
            pending = status.pending() - sum(pause.pending for pause in pauses)
            held = tuple(one for one in status.held_runs() if one.pipeline in names)
        shutdown.done()
    return SyncReport(
        passes=tuple(reports),
        delivered=delivered,
        pending=pending,
        rejected=rejected,
        stuck=tuple(stuck),
        interrupted=shutdown.signal,
        held=held,
        paused=tuple(pause for pause in pauses if pause.pipeline in names),
    )


async def _work(
    assembly: Assembly, names: Sequence[str], passes: list[PassReport], stuck: list[LaneReport], *, read: bool
) -> None:
    # One source at a time, so that the reports of the first sources are known after a timeout.
    for name in names if read else ():
        passes.extend(await assembly.supervisor.read_once([name]))
    stuck.extend(await assembly.dispatcher.drain())
    if not read:
        return

    async def read_again(again: Sequence[str]) -> None:
        await assembly.supervisor.read_once(again)

    await assembly.ownership.compare(names, read=read_again)
    stuck[:] = await assembly.dispatcher.drain()
