"""`ingestd plan`, and `ingestd sync --plan`, which executes a saved plan as a whole or not at all.

The intake of a planned sync writes to a copy of the state file. If the effect equals the plan, the copy replaces the
content of the state file in one transaction. The delivery begins after the replacement. So a crash leaves the state file
unchanged, or with all changes of the plan as pending entries, which the next sync or run delivers.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ingestd.commands.one_shot_sync import SyncReport, sync
from ingestd.commands.sync_plan.plan_comparison import plan_differences
from ingestd.commands.sync_plan.planner import Planned, make_plan, to_end
from ingestd.commands.sync_plan.values import SyncPlan
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.part_supervisor import mirror_failures_alone
from ingestd.daemon.signals import stop_signals
from ingestd.intake import PassReport
from ingestd.mirror.sqlite import StateCopy, StateFile
from ingestd.telemetry import Emit

T = TypeVar("T")


class PlanRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a sync now differs from the saved plan. ``differences``: as sentences. ``now``: the current plan."""

    differences: tuple[str, ...]
    now: SyncPlan


class Interrupted(Exception):
    """A signal ended the work before the delivery. ``exit_status``: 128 plus the signal's number, as in a shell."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.exit_status = 128 + signal.Signals[name].value


async def plan(
    configuration: Configuration,
    names: Sequence[str],
    *,
    rows: int,
    emit: Emit,
    own_process: bool = True,
    on_records: Callable[[int], None] = lambda _: None,
) -> Planned:
    """Return what a sync of the pipelines ``names`` would do. Nothing is written except a private temporary folder.

    A running daemon is not delayed. ``rows``, ``on_records``: see `make_plan`. ``own_process``: see `sync`.

    Raises:
        MirrorError: the state file can't be read.
        Interrupted: a signal ended the work.
    """

    async def make() -> Planned:
        with _private_folder() as folder:
            copy = await to_end(partial(StateCopy, configuration.settings.state, folder, now=time.time))
            with closing(copy):
                return await make_plan(configuration, names, copy=copy, rows=rows, emit=emit, on_records=on_records)

    if own_process:
        return await _until_signal(make)
    with mirror_failures_alone():
        return await make()


async def sync_planned(
    configuration: Configuration, saved: SyncPlan, *, timeout_seconds: float | None, emit: Emit
) -> SyncReport | PlanRefusal:
    """Execute a saved plan exactly, or change nothing.

    The sources are read again. If the effect on every pipeline is the same as in the plan, the new content is stored in one
    transaction, and then delivered. A run that the guard holds in the plan is held.

    Raises:
        MirrorError: the state file can't be used; `MirrorBusy` if a daemon runs.
        Interrupted: a signal ended the work before the delivery.
    """
    names = [one.name for one in saved.pipelines]
    made = await _until_signal(lambda: _store_planned(configuration, saved, names, emit))
    if isinstance(made, PlanRefusal):
        return made
    return await sync(configuration, names, timeout_seconds=timeout_seconds, emit=emit, passes=made)


async def _store_planned(
    configuration: Configuration, saved: SyncPlan, names: Sequence[str], emit: Emit
) -> tuple[PassReport, ...] | PlanRefusal:
    present = [one.name for one in configuration.settings.pipelines]
    with _private_folder() as folder, closing(StateFile(configuration.settings.state)) as state:
        copy = await to_end(partial(StateCopy, state, folder, now=time.time))
        with closing(copy):
            known = [name for name in names if name in present]
            made = await make_plan(configuration, known, copy=copy, rows=0, emit=emit)
        differences = plan_differences(saved, made.plan)
        if differences:
            return PlanRefusal(differences=tuple(differences), now=made.plan)
        state.replace_by(copy.path)  # runs in this thread, so no signal is handled during the call
    return made.passes


async def _until_signal(work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``work``. At SIGTERM or SIGINT, cancel the work, wait for its end and raise `Interrupted`."""
    asked = asyncio.Event()
    signals: list[str] = []

    def ask(name: str) -> None:
        signals.append(name)
        asked.set()

    with stop_signals(ask), mirror_failures_alone():
        async with asyncio.TaskGroup() as group:
            working = group.create_task(_awaited(work), name="plan")
            waiting = group.create_task(asked.wait(), name="signal")
            await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
            for task in (working, waiting):
                task.cancel()
    if signals:
        raise Interrupted(signals[0])
    return working.result()


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Yield a new folder with mode 0700 in TMPDIR, and delete it at the end."""
    with tempfile.TemporaryDirectory(prefix="ingestd-plan-") as folder:
        yield Path(folder)
