"""The workspace service as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from click.testing import CliRunner

from tests.support.daemon_process import ABSENT, restored_logs
from tests.support.network_hosts import Host
from workspaced.cli import main

DEADLINE_SECONDS = 30.0
PATH = os.pathsep.join([str(ABSENT.with_name("absent_service")), str(ABSENT), os.environ.get("PYTHONPATH", "")])


def workspaced(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in this process until it ends. Use ``serve`` only if it refuses to start; else use `WorkspaceService`."""
    with restored_logs():
        done = CliRunner().invoke(main, words, env=environment, catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def new_key(data: Path, *, name: str = "svc:test", role: str = "owner") -> str:
    """Create a key by the command line, and return it."""
    made = workspaced("keys", "create", name, "--role", role, "--data", str(data))
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


class WorkspaceService(AbstractContextManager["WorkspaceService"]):
    """``workspaced serve`` on a free port, without a rate limit. When the block ends, it is killed if it is still running."""

    def __init__(
        self,
        data: Path,
        *more: str,
        environment: Mapping[str, str] | None = None,
        open_files: tuple[int, int] | None = None,
        host: Host | None = None,
    ) -> None:
        """``open_files``: the soft and hard limit of file descriptors. ``host``: the host of the process; None: this machine."""
        # ``more`` can set the ports, such as the previous port after a restart.
        ports = ("--port", "0", "--admin-port", "0")
        words: Sequence[str] = ("-m", "workspaced", "serve", "--data", str(data), *ports, *more)
        self._log = (data.parent / f"{data.name}.{time.monotonic_ns()}.log").open("w+")
        limited = ["prlimit", f"--nofile={open_files[0]}:{open_files[1]}"] if open_files else []
        self.process = subprocess.Popen(
            host.command(sys.executable, *words) if host else [*limited, sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONPATH": PATH, "WORKSPACED_REQUESTS_PER_MINUTE": "0", **(environment or {})},
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()  # The pipe ends if the service fails, so this cannot hang.
        assert self.url, self.log

    def client(self, key: str) -> httpx.Client:
        headers = {"x-api-key": key, "ClientId": "tests"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=DEADLINE_SECONDS)

    @property
    def log(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events of all complete lines. A thread of the service writes them, so the last events may be missing."""
        return [json.loads(line) for line in self.log.rpartition("\n")[0].splitlines()]

    def wait_for_event(self, **fields: object) -> dict[str, Any]:
        """Wait for the first event with these fields, and return it. Fail after `DEADLINE_SECONDS`."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            for event in self.events:
                if fields.items() <= event.items():
                    return event
            time.sleep(0.02)
        raise AssertionError(f"no event with {fields} in {self.log}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE_SECONDS)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout
        self.process.stdout.close()
        self._log.close()
