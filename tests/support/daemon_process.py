"""The real daemon as a process, the notify socket that it reports to, and a scriptable source."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest
import structlog
from click.testing import CliRunner

from ingestd.cli import main
from tests.support.network_hosts import Host

ROOT = Path(__file__).parents[2]
ABSENT = ROOT / "tests" / "support" / "absent"
"""Packages that a real environment does not have."""
DEADLINE_SECONDS = 30.0
OURS = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INGESTD_CONFIG", "COVERAGE_PROCESS_START")
"""Variables of the outer environment that are removed for all commands of tests."""

# For Python this is an installed distribution: a folder on the path with a module and its entry points.
_PLUG_IN = '''
import threading
from pathlib import Path

from pydantic import BaseModel

from ingestd.sdk import Connector, Partition, Reject, SourceBroken, SourceUnavailable, Step, pack


class NumbersConnector(Connector):
    """Numbers up to ``upto``; can be away, broken, unreadable in part, or never come back from a read. ``gate``: a FIFO; a read
    waits until another process opens it. ``bug``: where it fails in an unforeseen way. ``label`` has no effect."""

    class Options(BaseModel):
        upto: int = 3
        rejects: int = 0
        away: bool = False
        broken: bool = False
        hang: Path | None = None
        gate: Path | None = None
        label: str = ""
        bug: str = ""

    def __init__(self, options, context):
        super().__init__(options, context)
        self._bug("opening")

    def _bug(self, where):
        if self.options.bug == where:
            raise RuntimeError("Symlink loop")

    def close(self):
        self._bug("closing")

    def count_waiting(self):
        self._bug("reporting")
        return {}

    def list_waiting(self, limit):
        self._bug("reporting")
        return ()

    def notices(self):
        self._bug("reporting")
        return ()

    def partitions(self):
        self._bug("listing")
        if self.options.away:
            raise SourceUnavailable("The numbers are unavailable.")
        if self.options.broken:
            raise SourceBroken("The numbers are not what they were. Check 'upto'.")
        return [Partition(name="numbers")]

    def read(self, partition, cursor):
        if self.options.hang:
            yield pack([{"n": "0"}], cursor={})
            self.options.hang.write_text("reading")
            threading.Event().wait()
        if self.options.gate:
            self.context.log("The gate is closed.")
            self.options.gate.read_bytes()
        token = {"upto": self.options.upto}
        if cursor == token:
            return
        rejects = tuple(Reject(position=-i, reason="It is no number.") for i in range(self.options.rejects))
        yield pack([{"n": str(n)} for n in range(self.options.upto)], cursor=token, rejects=rejects, last=True)

    def verify(self):
        self._bug("verifying")
        yield Step(name="counting", outcome="failed" if self.options.broken else "passed", sentence="One, two, three.")
'''


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """Return the environment without `OURS`, and with the plug-in connector ``numbers``, which is installed in ``folder``."""
    plug_ins = folder / "plug-ins"
    info = plug_ins / "numbers_source-1.0.dist-info"
    if not info.exists():
        info.mkdir(parents=True)
        (plug_ins / "numbers_source.py").write_text(_PLUG_IN)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbers-source\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[ingestd.connectors]\nnumbers = numbers_source:NumbersConnector\n")
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(map(str, (plug_ins, ABSENT, ROOT))),
        "PYTHONWARNINGS": "default",
        **extra,
    }


def write_configuration(
    folder: Path, url: str, *sources: Mapping[str, Any], workspace: str = "Bench", schedule: str | None = None
) -> Path:
    """Write a configuration with pipelines p0, p1, …: one for each source, with its own sink."""
    pipelines = [
        {
            "name": f"p{index}",
            "source": {"connector": "numbers", **source},
            "entries": {"key": f"{index}.{{n}}", "value": "{n}"},
            "sink": {"workspace": workspace, "label": f"Sink {index}"},
            **({"schedule": {"every": schedule}} if schedule else {}),
        }
        for index, source in enumerate(sources)
    ]
    path = folder / "ingestd.yaml"
    # JSON is valid YAML.
    path.write_text(
        json.dumps(
            {
                "service": {"url": url, "api_key": "test-key", "client_id": "test"},
                "state": "var/ingestd.db",
                "pipelines": pipelines,
            }
        )
    )
    return path


def ingestd(folder: Path, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a command of the daemon as a process until it ends. `here` is faster."""
    return subprocess.run(
        [sys.executable, "-m", "ingestd", *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextlib.contextmanager
def restored_logs() -> Iterator[None]:
    """Restore the logging configuration after the block: a command logs to the standard error at the time of its start."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)


def here(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process. This saves the second that Python and polars need to start."""
    plug_ins = environment(folder)["PYTHONPATH"].partition(os.pathsep)[0]
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder), restored_logs():
        patch.syspath_prepend(plug_ins)
        for name in OURS:
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        result = CliRunner().invoke(main, arguments, prog_name="ingestd", terminal_width=100)
    return subprocess.CompletedProcess(arguments, result.exit_code, stdout=result.stdout, stderr=result.stderr)


def held_run(folder: Path) -> dict[str, Any]:
    """Return the only held run of the configuration ``ingestd.yaml`` in a folder, as `status --json` shows it."""
    (found,) = json.loads(here(folder, "status", "--json").stdout)["held"]
    return dict(found)


class Manager:
    """The notify socket of a service manager. ``messages``: the received messages, in order of arrival."""

    def __init__(self) -> None:
        self.address = f"@ingestd-test-{uuid4().hex}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.address[1:])
        self.messages: list[dict[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fill(self) -> None:
        """Fill the socket's queue with messages, so that no further message can be sent until some are received."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    sender.sendto(b"FILLS=1", "\0" + self.address[1:])

    def drain(self) -> None:
        """Receive all messages that were sent before this call."""
        while select.select([self._socket], [], [], 0)[0]:
            self._receive()

    def wait_for(
        self, field: str, value: str | None = None, *, after: int = 0, seconds: float = DEADLINE_SECONDS
    ) -> dict[str, str]:
        """Wait for the first message from ``messages[after]`` on with ``field`` (and a value that contains ``value``)."""
        deadline = time.monotonic() + seconds
        seen = after
        while True:
            for message in self.messages[seen:]:
                if field in message and (value is None or value in message[field]):
                    return message
            seen = len(self.messages)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                raise AssertionError(f"no {field}={value or '…'} within {seconds} s, only {self.messages}")
            self._receive()

    def _receive(self) -> None:
        text = self._socket.recv(65_536).decode()
        self.messages.append(dict(line.split("=", 1) for line in text.split("\n") if "=" in line))


class Daemon:
    """The daemon as a child process; tests can wait for its JSON log lines."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, host: Host | None = None) -> None:
        """``host``: the host on which the daemon runs; None: this machine."""
        words = [sys.executable, "-m", *command]
        self.process = subprocess.Popen(
            host.command(*words) if host else words,
            cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._arrived = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self.process.stdout is None:
            raise AssertionError("started with a pipe")
        for line in self.process.stdout:
            with self._arrived:
                self.lines.append(line.rstrip())
                self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the JSON objects in the log."""
        with self._arrived:
            lines = list(self.lines)
        found = []
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return [event for event in found if isinstance(event, dict)]

    def wait_for(
        self, name: str, *, nth: int = 1, within_seconds: float = DEADLINE_SECONDS, **fields: Any
    ) -> dict[str, Any]:
        """Wait for the ``nth`` event with this name and these fields; return it."""
        deadline = time.monotonic() + within_seconds
        while True:
            with self._arrived:
                count = len(self.lines)
            found = [
                event
                for event in self.events
                if event.get("event") == name and all(event.get(key) == value for key, value in fields.items())
            ]
            if len(found) >= nth:
                return found[nth - 1]
            with self._arrived:
                more = lambda count=count: len(self.lines) > count or self._ended  # noqa: E731
                if (self._ended and len(self.lines) == count) or not self._arrived.wait_for(
                    more, deadline - time.monotonic()
                ):
                    raise AssertionError(f"no event {name} {fields} in:\n" + "\n".join(self.lines))

    def wait_for_line(self, *, seconds: float) -> None:
        """Wait until another line arrives or the process ends, for at most ``seconds``."""
        with self._arrived:
            count = len(self.lines)
            self._arrived.wait_for(lambda: len(self.lines) > count or self._ended, seconds)

    def stop(self, number: int = signal.SIGTERM, *, seconds: float = DEADLINE_SECONDS) -> int:
        """Send a signal, wait for the end for at most ``seconds``, and return the exit code."""
        self.process.send_signal(number)
        return self.ended(seconds=seconds)

    def ended(self, *, seconds: float = DEADLINE_SECONDS) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(timeout=seconds)
        self._reader.join()
        return code

    def close(self) -> None:
        """Kill the process if it still runs, and close its output."""
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def running_daemon(
    folder: Path, *arguments: str, module: str = "ingestd", **extra: str
) -> Iterator[tuple[Daemon, Manager]]:
    """Run a daemon with a service manager. When the block ends, the daemon is killed if it is still running."""
    with Manager() as manager:
        env = environment(folder, **{"NOTIFY_SOCKET": manager.address, **extra})
        daemon = Daemon([module, *arguments], env=env, cwd=folder)
        try:
            yield daemon, manager
        finally:
            daemon.close()
