"""A real systemd that systemd-nspawn boots in a root folder, with its own namespaces.

The root folder must be made for this purpose, because its systemd changes files there. The system uses the machine's kernel and
has only a loopback interface. Its processes and mounts end with the context, or with the process that started it. Its control
groups end only with the context. The caller needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BOOT_SECONDS = 60.0
DEADLINE_SECONDS = 60.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FOLLOW = ("--follow", "--no-tail", "--output=json", "--output-fields=MESSAGE,UNIT,_SYSTEMD_UNIT")

# systemd-nspawn refuses a /run that is on a disk. `unshare` gives systemd-nspawn a process namespace that ends with `unshare`.
_START = """
set -e
for group in $GROUPS_OF_SYSTEM; do echo 0 >"$group/cgroup.procs"; done
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/nspawn
exec "$@"
"""
_UNSHARE = ("setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
            "sh", "-c", _START, "sh")  # fmt: skip
_OPTIONS = ("--quiet", "--register=no", "--keep-unit", "--private-network", "--notify-ready=yes", "--console=pipe",
            "--resolv-conf=off", "--timezone=off", "--link-journal=no")  # fmt: skip

Event = Mapping[str, Any]


def missing_requirement() -> str | None:
    """Return why no system can be booted here, and the package to install; None if a system can be booted."""
    if os.geteuid() != 0:
        return "booting a systemd in a root folder needs root"
    for program, package in (("systemd-nspawn", "systemd-container"), ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            return f"{program} is missing: install Debian's package {package}"
    trial = ("unshare", "--mount", "--pid", "--fork", "true")
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        return "this container may not create namespaces, so no systemd can be booted"
    return None


class BootedSystem:
    """A running system. It runs commands, and its journal is read from the first line."""

    def __init__(self, leader: int, journal: Path) -> None:
        self._enter = ("nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        self._arrived: queue.Queue[Event | None] = queue.Queue()
        # journalctl runs outside the system: inside, it would keep the system's process namespace alive.
        words = ("journalctl", f"--directory={journal}", *_FOLLOW)
        self._follower = subprocess.Popen(
            words, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(self, *command: str, user: str = "root", given: str = "", accepted: Sequence[int] | None = (0,),
            seconds: float = DEADLINE_SECONDS) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command inside, as ``user``. An exit code that is not in ``accepted`` is an error; None accepts all codes."""
        account = () if user == "root" else ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--")
        done = subprocess.run(
            [*self._enter, *account, *command], input=given, env=_environment(), capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        if accepted is not None and done.returncode not in accepted:
            words = " ".join(command)
            raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}\n{self._recent()}")
        return done

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return the values of a unit's properties, by name."""
        printed = self.run("systemctl", "show", unit, f"--property={','.join(names)}").stdout
        return dict(line.split("=", 1) for line in printed.splitlines())

    def wait_for(self, matches: Callable[[Event], bool], what: str, *, seconds: float = DEADLINE_SECONDS) -> Event:
        """Return the next entry of the journal that matches. Later calls skip all entries up to this entry."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                event = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                event = None
            if event is None:
                raise AssertionError(f"not in the journal within {seconds:.0f} s: {what}\n{self._recent()}")
            if matches(event):
                return event

    def wait_for_text(self, unit: str, pattern: str, *, seconds: float = DEADLINE_SECONDS) -> Event:
        """Return the next journal entry from or about a unit with a text that matches a regular expression."""
        return self.wait_for(
            lambda event: (
                unit in (event.get("UNIT"), event.get("_SYSTEMD_UNIT"))
                and re.search(pattern, str(event.get("MESSAGE"))) is not None
            ),
            f"{pattern!r} of {unit}",
            seconds=seconds,
        )

    def _read(self) -> None:
        if self._follower.stdout is None:
            raise AssertionError("started with a pipe")
        for line in self._follower.stdout:
            self._arrived.put(json.loads(line))
        self._arrived.put(None)

    def _recent(self) -> str:
        """Return the last lines of the journal, for the message of an error."""
        words = (*self._enter, "journalctl", "--no-pager", "--lines=40", "--output=short-monotonic")
        return subprocess.run(words, env=_environment(), capture_output=True, text=True, check=False).stdout

    def close(self) -> None:
        """Stop reading the journal."""
        self._follower.kill()
        self._reader.join()
        self._follower.communicate()


@contextlib.contextmanager
def booted(root: Path, *binds: tuple[Path, str]) -> Iterator[BootedSystem]:
    """Boot the systemd of ``root``, and kill it at the end. ``binds``: (path here, path in the system), read-only."""
    (root / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n", encoding="ascii")  # without it: a first boot
    (root / "var/log/journal").mkdir(parents=True, exist_ok=True)
    mounted = [f"--bind-ro={source}:{target}" for source, target in binds]
    with contextlib.ExitStack() as stack:
        groups = stack.enter_context(_control_groups())
        address = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ingestd-boot-")), "notify")
        console = stack.enter_context(tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace"))
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        stack.callback(notified.close)
        notified.bind(str(address))
        process = subprocess.Popen(
            [*_UNSHARE, "systemd-nspawn", *_OPTIONS, *mounted, f"--directory={root}", "--boot"],
            env=_environment()
            | {"NOTIFY_SOCKET": str(address), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
            | {"GROUPS_OF_SYSTEM": " ".join(map(str, groups))},
            stdin=subprocess.DEVNULL, stdout=console, stderr=console,
        )  # fmt: skip
        try:
            with notified:  # closed after the start, because an unread socket would fill and block systemd
                ready = _is_ready(notified, process)
            if not ready:
                console.seek(0)
                raise AssertionError(f"systemd did not start in the root folder:\n{console.read()[-5000:]}")
            with contextlib.closing(BootedSystem(_leader(process.pid), root / "var/log/journal")) as system:
                yield system
        finally:
            _end(process)


def _is_ready(notified: socket.socket, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the system has reached its default target; return False if it ends or takes too long."""
    deadline = time.monotonic() + BOOT_SECONDS
    notified.settimeout(1.0)  # the maximum time until the end of the process is noticed
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(TimeoutError):
            if "READY=1" in notified.recv(65_536).decode().splitlines():
                return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill ``process``, and wait until the last process of its namespace has ended."""
    with contextlib.ExitStack() as stack:
        first = []  # process 1 of the namespace ends after all others
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                first.append(os.pidfd_open(child))
                stack.callback(os.close, first[-1])
        process.kill()
        process.wait()
        for descriptor in first:
            if not select.select([descriptor], [], [], DEADLINE_SECONDS)[0]:
                raise AssertionError(f"the processes of the system did not end within {DEADLINE_SECONDS:.0f} s")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _leader(pid: int) -> int:
    """Return the machine's process id of the system's process 1, a descendant of ``pid``."""
    for child in _children(pid):
        status = Path(f"/proc/{child}/status").read_text(encoding="utf-8")
        numbers = re.search(r"^NSpid:(.*)$", status, re.MULTILINE)
        if numbers is not None and len(numbers[1].split()) == 3 and numbers[1].split()[2] == "1":
            return child
        with contextlib.suppress(LookupError):
            return _leader(child)
    raise LookupError(f"process {pid} has no descendant that is process 1 of a nested namespace")


@contextlib.contextmanager
def _control_groups() -> Iterator[list[Path]]:
    """Create a control group in each hierarchy that systemd uses; remove it at the end, with all groups below it."""
    made: list[Path] = []
    name = f"ingestd-boot-{os.urandom(4).hex()}"  # systemd-nspawn uses the same group path in both hierarchies
    try:
        for mount, path in _hierarchies():
            group = mount / path / name
            group.mkdir()
            made.append(group)
        yield made
    finally:
        for group in made:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()


def _hierarchies() -> Iterator[tuple[Path, str]]:
    """Yield the mount point and this process's group: for control groups version 2 and for systemd's hierarchy of version 1."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines())
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        name = (
            ""
            if kind == "cgroup2"
            else "name=systemd"
            if kind == "cgroup" and "name=systemd" in options.split(",")
            else None
        )
        if name is not None and name in own:
            yield Path(before.split()[4]), own[name].lstrip("/")


def _environment() -> dict[str, str]:
    return {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/root", "TERM": "dumb"}
