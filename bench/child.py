"""Child processes: their cost, and servers that run during a measurement.

Memory is VmHWM, read from /proc while the child runs. ru_maxrss of an ended child is not used, because it includes memory of
the parent that forked the child. CPU time is what the kernel reports for the ended child and its children.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.flame import recorded

ROOT = Path(__file__).parents[1]
HANGING_SECONDS = 1800.0
"""The timeout after which a hanging child is killed. No measurement takes this long."""
_SAMPLE_SECONDS = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")


class ChildFailed(Exception):
    """A child failed; the message has its last output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a command. ``seconds``: from exec to the end, with start-up and imports; ``started``: by the monotonic clock.
    ``written_mib``: what the kernel had to write to disks.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: float
    written_mib: float
    started: float
    output: str


def environment(**extra: str) -> dict[str, str]:
    """Return the environment for a child, without variables that configure a daemon or prevent compiled modules."""
    ours = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INGESTD_CONFIG", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PYTHONPATH": str(ROOT), **extra}


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def run(command: Sequence[str], **extra: str) -> Cost:
    """Run a command to its end, with ``extra`` in its environment.

    Raises:
        ChildFailed: The command failed or timed out.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment(**extra), cwd=ROOT
        )
        peak = _Peak(process.pid)
        late = threading.Timer(HANGING_SECONDS, process.kill)
        late.start()
        peak.start()
        with recorded(process.pid, " ".join(command[2:4])) if "ingestd" in command else contextlib.nullcontext():
            _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic()
        late.cancel()
        peak.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise ChildFailed(f"{' '.join(command)} ended with {process.returncode}:\n{errors.read()[-2000:]}")
        return Cost(
            seconds=ended - started,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_mib=peak.mib,
            written_mib=peak.written_mib,
            started=started,
            output=output.read(),
        )


class Running:
    """A child that serves until the context ends. Callers can wait for a line of its output."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._name = name
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self, wanted: Callable[[str], bool] = bool, *, within: float = 60.0) -> str:
        """Return the next line for which ``wanted`` is true.

        Raises:
            ChildFailed: No such line came within ``within`` seconds, or the child ended.
        """
        deadline = time.monotonic() + within
        seen: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ChildFailed(f"{self._name} printed no expected line in {within:.0f} s: {seen[-5:]}") from None
            if line is None:
                raise ChildFailed(f"{self._name} ended: {seen[-20:]}")
            seen.append(line)
            if wanted(line):
                return line

    def send(self, line: str) -> None:
        """Write a line to the child."""
        if self.process.stdin is None:
            raise AssertionError("the child was started with a pipe")
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def peak_mib(self) -> float:
        return peak_mib(self.process.pid) or 0.0

    def family_cpu_seconds(self) -> float:
        """Return the user and system time of the process and its running children so far, in seconds."""
        return sum(cpu_seconds(pid) for pid in [self.process.pid, *children_of(self.process.pid)])

    def task_seconds(self) -> float:
        """Return the processor time of the running threads so far, in seconds (exact to 1 ns), without ended threads."""
        return sum(int(text.split()[0]) for text in self._of_tasks("schedstat")) / 1e9

    def wakeups(self) -> int:
        """Return the number of voluntary context switches of the running threads so far."""
        lines = [line for text in self._of_tasks("status") for line in text.splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

    def resident_mib(self) -> float:
        """Return the current resident memory, in MiB."""
        return resident_mib(self.process.pid)

    def _of_tasks(self, name: str) -> list[str]:
        return [(task / name).read_text() for task in Path(f"/proc/{self.process.pid}/task").iterdir()]

    def cpu_seconds(self) -> float:
        """Return the user and system time of the process so far, in seconds, without its children."""
        return cpu_seconds(self.process.pid)


def children_of(pid: int) -> list[int]:
    """Return the process ids of the running children of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


@contextlib.contextmanager
def running(command: Sequence[str], *, log: Path, extra: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a child until the context ends, then terminate it, and kill it after 15 s. Its standard error goes to ``log``."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=environment(**(extra or {})), cwd=ROOT,
        )  # fmt: skip
    try:
        yield Running(" ".join(command), process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def cpu_seconds(pid: int, *, with_ended_children: bool = False) -> float:
    """Return the user and system time of a process so far, in seconds, without its running children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / _TICKS


def peak_mib(pid: int) -> float | None:
    """Return the peak resident memory of a process, in MiB; None if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0].split()[1]) / 1024 if found else None


def resident_mib(pid: int) -> float:
    """Return the resident memory of a running process, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _written_mib(pid: int) -> float:
    """Return what a process has written to disks so far, in MiB; 0 if the process has ended."""
    try:
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0.0
    return int(fields["write_bytes"]) / 2**20


class _Peak:
    """Samples a process's peak memory and written bytes until `stop`; the last fiftieth of a second may be missing."""

    def __init__(self, pid: int) -> None:
        self.mib = 0.0
        self.written_mib = 0.0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.mib = max(self.mib, peak_mib(self._pid) or 0.0)
            self.written_mib = max(self.written_mib, _written_mib(self._pid))
