"""How things stand, by the state file; the daemon that may be writing it is neither asked nor disturbed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NobodyListens, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Answer, ReadNotices, SourceNotices
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.failed_parts import FailedPart
from ingestd.mirror.port import EntryOrigin, PipelineStatus, SinkStatus
from ingestd.mirror.rejections import Forgotten, Rejection
from ingestd.mirror.sqlite import Observer, SqliteMirror, damage_named, state_exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state file in numbers. ``pid``: the process that holds it, None where no daemon runs.

    ``exists``: false before the first run; the numbers are then 0. ``idle``: configured pipelines that never ran.
    ``forgotten``: rejections that the configured bounds have cost. ``failed_parts``: parts of the running daemon that ended
    with an unforeseen exception and start again by themselves; ``notices``: what an operator should know about its sources, such
    as files that can't be moved; both are empty where no daemon runs.
    """

    configuration: str
    state: str
    exists: bool
    pid: int | None
    pending: int
    rejected: int
    pipelines: tuple[PipelineStatus, ...]
    idle: tuple[str, ...]
    sinks: tuple[SinkStatus, ...]
    rejections: tuple[Rejection, ...]
    forgotten: Forgotten | None = None
    failed_parts: tuple[FailedPart, ...] = ()
    notices: tuple[OperatorNotice, ...] = ()


_ANSWER_SECONDS = 5.0
_REJECTIONS = 20
"""How many of the newest rejections status shows."""


def read_status(configuration: Configuration) -> Status:
    """The numbers as they are now.

    Raises:
        MirrorNewer: a newer program wrote the state file.
        MirrorCorrupt: it is damaged, or no state file.
    """
    state = configuration.settings.state
    names = [pipeline.name for pipeline in configuration.settings.pipelines]
    if not state_exists(state):
        return Status(
            configuration=str(configuration.path),
            state=str(state),
            exists=False,
            pid=holder(state),
            pending=0,
            rejected=0,
            pipelines=(),
            idle=tuple(names),
            sinks=(),
            rejections=(),
        )
    pid = holder(state)
    with observed(configuration) as mirror:
        pipelines = tuple(mirror.pipelines())
        ran = {pipeline.name for pipeline in pipelines}
        return Status(
            configuration=str(configuration.path),
            state=str(state),
            exists=True,
            pid=pid,
            pending=mirror.pending(),
            rejected=mirror.rejected(),
            pipelines=pipelines,
            idle=tuple(name for name in names if name not in ran),
            sinks=tuple(mirror.sinks()),
            rejections=tuple(mirror.rejections(limit=_REJECTIONS)),
            forgotten=mirror.forgotten(),
            failed_parts=tuple(mirror.failed_parts()) if pid is not None else (),
            notices=read_notices(state) if pid is not None else (),
        )


def read_notices(state: Path) -> tuple[OperatorNotice, ...]:
    """What the daemon that holds the state file says about its sources; if it does not answer in time, that."""

    async def ask() -> Answer:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await call(state, ReadNotices())

    try:
        answer = asyncio.run(ask())
    except NobodyListens:
        return ()
    except (RequestRefused, TimeoutError, OSError) as error:
        why = (
            f"it did not answer within {_ANSWER_SECONDS:.0f} seconds" if isinstance(error, TimeoutError) else str(error)
        )
        return (OperatorNotice(pipeline="", sentence=f"The daemon can't be asked about its sources: {why}"),)
    return answer.notices if isinstance(answer, SourceNotices) else ()


@contextmanager
def observed(configuration: Configuration) -> Iterator[Observer]:
    """A view of the state file while the context is open, beside a daemon that may be writing it.

    Raises:
        MirrorError: there is no state file yet, or it can't be read.
    """
    mirror = SqliteMirror.observe(configuration.settings.state)
    try:
        with damage_named(configuration.settings.state):
            yield mirror
    finally:
        mirror.close()


def read_origins(configuration: Configuration, key: str) -> list[EntryOrigin]:
    """Where the entries of a key came from, in every sink that should hold it.

    Raises:
        MirrorError: there is no state file yet, or it can't be read.
    """
    with observed(configuration) as mirror:
        return mirror.origins(key)


def holder(state: Path, *, locks: Path = Path("/proc/locks")) -> int | None:
    """The pid of the process that holds the state file, by the kernel's table of locks; None where nobody does.

    Taking the lock to see whether it is free would make a daemon that starts in this moment believe that it is not.
    """
    lock_file = state.with_name(state.name + ".lock")
    try:
        facts = lock_file.stat()
        written = lock_file.read_text(encoding="ascii", errors="replace").strip()
        held = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    device = (os.major(facts.st_dev), os.minor(facts.st_dev))
    for line in held:
        # 1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF; the pid is 0 where it lives in another namespace
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        major, minor, inode = words[5].split(":")
        if int(inode) != facts.st_ino:
            continue
        # Some file systems (btrfs) show another device number to stat than to the kernel: then the pid has to agree.
        if words[4] == written or (int(major, 16), int(minor, 16)) == device:
            return int(written) if written.isdigit() else int(words[4])
    return None
