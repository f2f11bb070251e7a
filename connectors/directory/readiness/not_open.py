"""No other process has the file open for writing, as far as this system can tell."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Literal

from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule


class NotOpen(ReadinessRule):
    """Nobody on this machine has the file open for writing.

    A read lease is asked for, which the kernel refuses while somebody has the file open for writing; it is given back at
    once. Leases are for the file's owner and for root; else the open files of those processes are looked at whose
    account we share. A writer on another machine is seen by neither.
    """

    type: Literal["not-open"] = "not-open"

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """Closing is an event, so it is looked at again then."""
        if writers := find_writers(look.path):
            return NotReady(sentence=f"it is open for writing by {writers}")
        return None


def find_writers(path: Path) -> str:
    """Who has a file open for writing, for a sentence; empty: nobody that can be seen."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        free = _lease(descriptor)
        if free:
            return ""
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    seen = _writing_processes((status.st_dev, status.st_ino))
    if seen:
        return seen
    return "another process" if free is False else ""


def _lease(descriptor: int) -> bool | None:
    """Whether a read lease can be had; None where this file system or this account can't have leases."""
    try:
        # A lease that somebody breaks sends a signal, which by default ends the process; this one is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    except OSError:
        return None
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


def _writing_processes(file: tuple[int, int], proc: Path = Path("/proc")) -> str:
    """``python3 (process 4711)``: the first of those that we may look at."""
    for folder in proc.iterdir():
        if not folder.name.isdigit() or folder.name == str(os.getpid()):
            continue
        try:
            if any(_writes(folder, link.name, file) for link in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} (process {folder.name})"
        except OSError:  # another account's, or it has ended
            continue
    return ""


def _writes(process: Path, descriptor: str, file: tuple[int, int]) -> bool:
    status = (process / "fd" / descriptor).stat()
    if (status.st_dev, status.st_ino) != file:
        return False
    flags = (process / "fdinfo" / descriptor).read_text().partition("flags:")[2].split()[0]
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
