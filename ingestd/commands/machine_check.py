"""Checks of the machine by `ingestd doctor`: versions, disk, clock, limits and file modes. The checks change nothing."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import sqlite3
import stat
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from ingestd.commands.configuration_check import CheckFinding
from ingestd.daemon.configuration import Configuration
from ingestd.sdk import Step
from ingestd.settings.loader import secret_texts

FREE_BYTES = 256 << 20
"""The minimum free space for the state file: SQLite's WAL may grow to 64 MiB, and each reading is staged."""
DESCRIPTORS = 1024
WATCHES = 8192
"""The minimum number of watches. Each folder of a tree needs a watch. Linux has a lower default only on small machines."""

_INOTIFY = Path("/proc/sys/fs/inotify")
_TIMEX_BYTES = 256  # struct timex of adjtimex(2) has 208 bytes on 64-bit Linux
_TIME_ERROR = 5
_SECRET_FILE = re.compile(r"(?<!\$)\$\{file:([^}]+)\}")


def check_machine(configuration: Configuration, *, inotify: Path = _INOTIFY) -> Iterator[CheckFinding]:
    """Check what a configuration needs from this machine. ``inotify``: the kernel's folder with the limits of inotify."""
    yield _finding("versions", "passed", f"{_versions()}.")
    yield _disk(configuration.settings.state)
    yield _clock()
    yield _descriptors()
    yield from _watches(inotify)
    yield from _modes(configuration)


def _versions() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("polars", "httpx"))
    return (
        f"ingestd {version('ingestd')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {libraries}, "
        f"{platform.system()} {platform.release()}"
    )


def _disk(state: Path) -> CheckFinding:
    folder = next(one for one in (state.parent, *state.parent.parents) if one.exists())
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    sentence = f"{folder} has {free >> 20} MiB of free space for the state file {state.name}."
    if free < FREE_BYTES:
        return _finding("disk", "failed", f"{sentence} Free {FREE_BYTES >> 20} MiB at least.")
    if found.f_files and not found.f_favail:
        return _finding("disk", "failed", f"{folder} has no free inode, so no file can be created. Delete files.")
    return _finding("disk", "passed", sentence)


def _clock() -> CheckFinding:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "adjtimex"):
        return _finding("clock", "skipped", "This system does not report whether its clock is synchronised.")
    found = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if found == _TIME_ERROR:
        return _finding(
            "clock",
            "skipped",
            "The kernel's clock is not synchronised. Times in logs, 'trace' and the service may differ. "
            "Enable systemd-timesyncd or chrony, unless the host of this container does it.",
        )
    if found < 0:
        return _finding("clock", "skipped", f"The clock can't be checked: {os.strerror(ctypes.get_errno())}.")
    return _finding("clock", "passed", "The kernel's clock is synchronised.")


def _descriptors() -> CheckFinding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= DESCRIPTORS
    sentence = (
        "A process may open any number of files."
        if soft == resource.RLIM_INFINITY
        else f"A process may open {soft} files."
    )
    if not enough:
        sentence += f" Permit {DESCRIPTORS}, with LimitNOFILE= in the unit or 'ulimit -n'."
    return _finding("descriptors", "passed" if enough else "failed", sentence)


def _watches(inotify: Path) -> Iterator[CheckFinding]:
    try:
        watches = int((inotify / "max_user_watches").read_text(encoding="ascii"))
        instances = int((inotify / "max_user_instances").read_text(encoding="ascii"))
    except (OSError, ValueError):
        yield _finding("watches", "skipped", "This system has no limits of inotify. Folders are scanned at intervals.")
        return
    sentence = f"An account may watch {watches} folders, in {instances} instances. ingestd needs one instance."
    if watches < WATCHES:
        sentence += (
            f" Permit more: 'sysctl fs.inotify.max_user_watches={WATCHES}'. Other folders are scanned at intervals."
        )
    yield _finding("watches", "passed" if watches >= WATCHES else "failed", sentence)


def _modes(configuration: Configuration) -> Iterator[CheckFinding]:
    """Report files with secrets or values that other accounts can read."""
    text = configuration.path.read_text(encoding="utf-8")
    private = {configuration.settings.state: "It contains values"}
    # The log masks the address of a SQLite file like every database address, but this address has no password.
    if any(secret in text and not secret.startswith("sqlite:") for secret in secret_texts(configuration.settings)):
        private[configuration.path] = "It contains a secret"
    for name in _SECRET_FILE.findall(text):
        private[configuration.base / name] = "It is a secret"
    for path, content in private.items():
        try:
            mode = path.stat().st_mode
        except OSError:  # other checks report a missing file
            continue
        if mode & stat.S_IROTH:  # an operator may have given a group access on purpose
            yield _finding("modes", "failed", f"All accounts can read {path}. {content}: 'chmod o-rwx {path}'.")
        else:
            yield _finding("modes", "passed", f"Not every account can read {path}.")


def _finding(name: str, outcome: Literal["passed", "failed", "skipped"], sentence: str) -> CheckFinding:
    return CheckFinding(subject="machine", step=Step(name=name, outcome=outcome, sentence=sentence))
