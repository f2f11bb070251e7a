"""PostgreSQL servers in temporary folders: a test may stop, damage and configure them."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

_DEADLINE_SECONDS = 60.0


class PostgresServer:
    """A PostgreSQL server; ``run`` executes one of its programs on its data."""

    def __init__(self, folder: Path, programs: Path, settings: Sequence[str]) -> None:
        self._folder = folder
        self._programs = programs
        self._settings = settings
        self.data = folder / "data"
        self.port = _free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        self._execute([program, "-D", str(self.data), *arguments])

    def _execute(self, command: Sequence[str]) -> None:
        program, *arguments = command
        words = [*_as_user("postgres"), str(self._programs / program), *arguments]
        subprocess.run(words, check=True, capture_output=True, timeout=_DEADLINE_SECONDS, cwd=self._folder)

    def start(self) -> None:
        options = [f"-p {self.port}", "-c listen_addresses=127.0.0.1", f"-k {self._folder}", "-F", *self._settings]
        self.run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", " ".join(options), "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-w", "-m", mode, "stop")

    def crash(self) -> None:
        """End all its processes at once, and start it again."""
        self.stop("immediate")
        self.start()

    @contextmanager
    def standby(self) -> Iterator[PostgresServer]:
        """Start a standby that follows this server."""
        other = PostgresServer(self._folder / "standby", self._programs, self._settings)
        other.data = self._folder / "standby" / "data"  # its folder is made by the program, with the right owner
        primary = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        command = ["pg_basebackup", "-D", str(other.data), *primary, "-R", "-c", "fast", "--no-sync"]
        self._execute(command)
        other.start()
        try:
            yield other
        finally:
            other.stop("immediate")

    def wait_until_replayed(self, standby: PostgresServer) -> None:
        """Wait until the standby has all that was written to this server."""
        with self.connect() as primary, standby.connect() as follower:
            (end,) = primary.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
            until = time.monotonic() + _DEADLINE_SECONDS
            reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while not (follower.execute(reached, (end,)).fetchone() or (False,))[0]:
                if time.monotonic() > until:
                    raise AssertionError("the standby does not follow")
                time.sleep(0.02)  # a standby does not signal what it has replayed

    def copy(self, target: Path) -> None:
        """Copy the data of the stopped server, with its owner and its permissions."""
        subprocess.run(["cp", "-a", str(self.data), str(target)], check=True, timeout=_DEADLINE_SECONDS)

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True, **more)


@contextmanager
def postgresql_server(*settings: str) -> Iterator[PostgresServer]:
    """Start a server with ``settings`` such as ``-c max_prepared_transactions=10``."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        pytest.skip("no PostgreSQL to test with: install Debian's package postgresql")
    with _folder("postgres") as folder:
        server = PostgresServer(folder, programs[-1].parent, settings)
        server.run("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@cache
def server_of_tests() -> str:
    """Return the URL of INGESTD_TEST_POSTGRES_URL, or of a server that ends with this process. Skips the test without both."""
    given = os.environ.get("INGESTD_TEST_POSTGRES_URL")
    if given:
        return given
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgresql_server()).url


@contextmanager
def _folder(user: str) -> Iterator[Path]:
    """Make a folder that the server's user may use; pytest's folders are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="ingestd-server-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_user(user: str) -> list[str]:
    return ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
