"""The rule `not-open`: no process on this machine has the file open for writing."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Literal

from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule


class NotOpen(ReadinessRule):
    """No process on this machine has the file open for writing.

    The rule requests a read lease and releases it immediately. The kernel refuses the lease while any process has the file open
    for writing. Only the file's owner and root get leases. If no lease is granted, the rule examines the open files of the
    processes that its account may examine. Neither method detects a writer on another machine.
    """

    type: Literal["not-open"] = "not-open"

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait while a process has the file open for writing. When it closes the file, an event starts a new evaluation."""
        with view.open_file() as file:
            writers = find_writers(file.fileno())
        return NotReady(sentence=f"it is open for writing by {writers}") if writers else None


def find_writers(descriptor: int) -> str:
    """Return the name of a process that has the open file ``descriptor`` open for writing; empty if none is found."""
    has_lease = _request_lease(descriptor)
    if has_lease:
        return ""
    status = os.fstat(descriptor)
    found = _find_writing_process((status.st_dev, status.st_ino))
    if found:
        return found
    return "another process" if has_lease is False else ""


def _request_lease(descriptor: int) -> bool | None:
    """Return True if the kernel grants a read lease, False if it refuses the lease, None if leases are not possible here."""
    try:
        # If a lease is broken, the kernel sends a signal. Its default would end this process, so SIGURG is set: it is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    except OSError:
        return None
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


def _find_writing_process(file: tuple[int, int], proc: Path = Path("/proc")) -> str:
    """Return a process that writes the file, such as ``python3 (process 4711)``. Empty: this account can find no process."""
    for folder in proc.iterdir():
        if not folder.name.isdigit() or folder.name == str(os.getpid()):
            continue
        try:
            if any(_writes(folder, link.name, file) for link in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} (process {folder.name})"
        except OSError:  # the process belongs to another account, or has ended
            continue
    return ""


def _writes(process: Path, descriptor: str, file: tuple[int, int]) -> bool:
    status = (process / "fd" / descriptor).stat()
    if (status.st_dev, status.st_ino) != file:
        return False
    flags = (process / "fdinfo" / descriptor).read_text().partition("flags:")[2].split()[0]
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
