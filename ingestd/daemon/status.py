"""How things stand, by the state file; the daemon that may be writing it is neither asked nor disturbed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingestd.daemon.configuration import Configuration
from ingestd.mirror.port import Origin, PipelineStatus, SinkStatus
from ingestd.mirror.rejections import Forgotten, Rejection
from ingestd.mirror.sqlite import Observer, SqliteMirror


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state file in numbers. ``pid``: the process that holds it, None where no daemon runs.

    ``exists``: false before the first run; the numbers are then 0. ``idle``: configured pipelines that never ran.
    ``forgotten``: rejections that the configured bounds have cost.
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
    if not state.exists():
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
    with observed(configuration) as mirror:
        pipelines = tuple(mirror.pipelines())
        ran = {pipeline.name for pipeline in pipelines}
        return Status(
            configuration=str(configuration.path),
            state=str(state),
            exists=True,
            pid=holder(state),
            pending=mirror.pending(),
            rejected=mirror.rejected(),
            pipelines=pipelines,
            idle=tuple(name for name in names if name not in ran),
            sinks=tuple(mirror.sinks()),
            rejections=tuple(mirror.rejections(limit=_REJECTIONS)),
            forgotten=mirror.forgotten(),
        )


@contextmanager
def observed(configuration: Configuration) -> Iterator[Observer]:
    """A view of the state file while the context is open, beside a daemon that may be writing it.

    Raises:
        MirrorError: there is no state file yet, or it can't be read.
    """
    mirror = SqliteMirror.observe(configuration.settings.state)
    try:
        yield mirror
    finally:
        mirror.close()


def read_origins(configuration: Configuration, key: str) -> list[Origin]:
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
