"""The state file as seen by processes other than its daemon: the status, and the process that holds the file."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ingestd.core.pipeline_state import PipelineFacts, derive_state
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import ControlStandby, ReadNotices, Response, StandbyControlled
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.daemon.status import Status, compile_status
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.sqlite import Observer, SqliteMirror, damage_named, state_exists
from ingestd.standby.status import StandbyStatus

_RESPONSE_SECONDS = 5.0


def read_status(configuration: Configuration) -> Status:
    """Read the current status.

    Raises:
        MirrorNewer: a newer version wrote the state file.
        MirrorCorrupt: the file is damaged, or not a state file.
    """
    state = configuration.settings.state
    if not state_exists(state):
        never = PipelineFacts(has_run=False)
        return Status(
            configuration=str(configuration.path),
            state=str(state),
            exists=False,
            pid=holder(state),
            pending=0,
            rejected=0,
            pipelines=(),
            sinks=(),
            rejections=(),
            states=tuple(derive_state(pipeline.name, never) for pipeline in configuration.settings.pipelines),
        )
    pid = holder(state)
    with observe(configuration) as mirror:
        sources = read_notices(state) if pid is not None else SourceNotices()
        return compile_status(mirror, configuration, pid=pid, sources=sources)


def read_notices(state: Path) -> SourceNotices:
    """Return the running daemon's notices about its sources, or a notice that says why it did not respond."""

    async def request() -> Response:
        async with asyncio.timeout(_RESPONSE_SECONDS):
            return await call(state, ReadNotices())

    try:
        response = asyncio.run(request())
    except NoDaemon:
        return SourceNotices()
    except TimeoutError:
        reason = f"no response within {_RESPONSE_SECONDS:.0f} seconds"
    except (RequestRefused, OSError) as error:
        reason = str(error)
    else:
        return response if isinstance(response, SourceNotices) else SourceNotices()
    sentence = f"The daemon could not report the state of its sources: {reason}"
    return SourceNotices(notices=(OperatorNotice(pipeline="", sentence=sentence),))


def refuse_on_standby(state: Path) -> None:
    """Raise RequestRefused if the daemon of a state file is a standby, because the file then shows an earlier time. Blocks."""

    async def request() -> Response:
        async with asyncio.timeout(_RESPONSE_SECONDS):
            return await call(state, ControlStandby(action="status", as_json=True))

    try:
        response = asyncio.run(request())
    except (NoDaemon, RequestRefused, OSError):
        return  # there is no daemon, it runs without --standby, or it does not respond
    if isinstance(response, StandbyControlled):
        found = msgspec.convert(json.loads(response.text)["standby"], StandbyStatus)
        if found.role == "standby":
            raise RequestRefused(found.refusal)


@contextmanager
def observe(configuration: Configuration) -> Iterator[Observer]:
    """Open a read-only view of the state file. A daemon may write the file at the same time.

    Raises:
        MirrorError: there is no state file yet, or it can't be read.
    """
    mirror = SqliteMirror.observe(configuration.settings.state)
    try:
        with damage_named(configuration.settings.state):
            yield mirror
    finally:
        mirror.close()


def holder(state: Path, *, locks: Path = Path("/proc/locks")) -> int | None:
    """Return the pid of the process that holds the state file's lock, or None. Reads the kernel's table of locks.

    This process must not try to take the lock: a daemon that starts at the same time would fail.
    """
    lock_file = state.with_name(state.name + ".lock")
    try:
        handle = os.open(lock_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="ascii", errors="replace") as lock:
            facts, written_pid = os.fstat(handle), lock.read(32).strip()
        locks_held = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    device = (os.major(facts.st_dev), os.minor(facts.st_dev))
    for line in locks_held:
        # 1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF; the pid is 0 if the process is in another namespace
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        major, minor, inode = words[5].split(":")
        if int(inode) != facts.st_ino:
            continue
        # On some file systems (btrfs), stat and the kernel's table have different device numbers, so compare the pid, too.
        if words[4] == written_pid or (int(major, 16), int(minor, 16)) == device:
            return int(written_pid) if written_pid.isdigit() else int(words[4])
    return None
