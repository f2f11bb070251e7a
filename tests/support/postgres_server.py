"""PostgreSQL servers in temporary folders: a test may stop, damage and configure them."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.support.network_hosts import Host
from tests.support.small_disk import Disk, small_disk

_DEADLINE_SECONDS = 60.0


class PostgresServer:
    """A PostgreSQL server on this machine or a host; ``run`` executes one of its programs on its data."""

    def __init__(
        self, folder: Path, programs: Path, settings: Sequence[str], host: Host | None = None, disk: Disk | None = None
    ) -> None:
        self._host = host
        self.disk = disk
        """What `small_disk` made of its folder, if anything."""
        self.address = host.address if host else "127.0.0.1"
        self._folder = self._first_folder = folder
        self._programs = programs
        self._settings = settings
        self.data = folder / "data"
        self.port = _free_port()
        self.url = f"postgresql://postgres@{self.address}:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        self._execute([program, "-D", str(self.data), *arguments])

    def _execute(self, command: Sequence[str]) -> None:
        program, *arguments = command
        words = [*_as_user("postgres"), str(self._programs / program), *arguments]
        words = self._host.command(*words) if self._host else words
        subprocess.run(words, check=True, capture_output=True, timeout=_DEADLINE_SECONDS, cwd=self._folder)

    def start(self) -> None:
        options = [
            f"-p {self.port}",
            f"-c listen_addresses={self.address}",
            f"-k {self._folder}",
            "-F",
            *self._settings,
        ]
        self.run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", " ".join(options), "start")

    def is_running(self) -> bool:
        """Return whether it has a process that responds to signals."""
        try:
            os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), 0)
        except (OSError, IndexError):
            return False
        return True

    def kill(self) -> None:
        """Kill all its processes, and delete its data: a former primary must not start again."""
        server = int((self.data / "postmaster.pid").read_text().split()[0])
        for process in [server, *_children(server)]:
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.data, ignore_errors=True)

    def stop(self, mode: str = "fast") -> None:
        """End it, if it runs."""
        if self.is_running():
            self.run("pg_ctl", "-w", "-m", mode, "stop")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """End all its processes at once, and start it again after the block."""
        self.stop("immediate")
        try:
            yield
        finally:
            self.start()

    def crash(self) -> None:
        """End all its processes at once, and start it again."""
        with self.stopped():
            pass

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes during the block. Its machine still confirms what it receives, and accepts connections."""
        server = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(server, signal.SIGSTOP)  # first, so that it makes no further processes
        processes = [server, *_children(server)]
        for process in processes[1:]:
            _signal(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                _signal(process, signal.SIGCONT)

    @contextmanager
    def standby(self, host: Host | None = None, port: int = 0, megabytes: int = 0) -> Iterator[PostgresServer]:
        """Start a standby that follows this server, on a port or on a free one, and on a disk of its own or on none."""
        # Not below the folder of this server: the path of a Unix socket has at most 107 bytes.
        folder = self._first_folder / f"standby{len(list(self._first_folder.glob('standby*')))}"
        with _disk(folder, megabytes) if megabytes else nullcontext() as disk:
            other = PostgresServer(folder, self._programs, self._settings, host, disk)
            self._follow(other, port)
            try:
                yield other
            finally:
                other.stop("immediate")

    def _follow(self, other: PostgresServer, port: int) -> None:
        """Make another server a standby of this one, and start it."""
        other._first_folder = self._first_folder
        if port:
            other.port = port
            other.url = f"postgresql://postgres@{other.address}:{port}/postgres"
        primary = ["-h", self.address, "-p", str(self.port), "-U", "postgres"]
        command = ["pg_basebackup", "-D", str(other.data), *primary, "-R", "-c", "fast", "--no-sync"]
        self._execute(command)
        other.start()

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

    def connect_locally(self) -> psycopg.Connection[Any]:
        """Connect without the network."""
        return self.connect(host=str(self._folder), hostaddr="")


@contextmanager
def postgresql_server(*settings: str, host: Host | None = None, megabytes: int = 0) -> Iterator[PostgresServer]:
    """Start a server with ``settings`` such as ``-c max_prepared_transactions=10``, on this machine or ``host``.

    ``megabytes``: of a disk of its own; 0: it has none.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        pytest.skip("no PostgreSQL to test with: install Debian's package postgresql")
    with (
        _folder("postgres") as folder,
        _disk(folder / "first", megabytes) if megabytes else nullcontext() as disk,
    ):
        server = PostgresServer(folder / "first" if disk else folder, programs[-1].parent, settings, host, disk)
        server._first_folder = folder
        server.run("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        if host:
            with (server.data / "pg_hba.conf").open("a") as access:
                access.write("host all,replication all samenet trust\n")
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


class ReplicatedServer(NamedTuple):
    """A primary and a standby; each commit waits for the standby. ``url`` names both."""

    primary: PostgresServer
    standby: PostgresServer
    url: str


@contextmanager
def replicated_server(first: Host | None = None, second: Host | None = None) -> Iterator[ReplicatedServer]:
    """Start a primary and a synchronous standby, on this machine or on hosts."""
    with postgresql_server(host=first) as primary, primary.standby(second) as standby:
        with primary.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            until = time.monotonic() + _DEADLINE_SECONDS
            while connection.execute("SELECT sync_state FROM pg_stat_replication").fetchone() != ("sync",):
                assert time.monotonic() < until, "the standby is not synchronous"
                time.sleep(0.02)  # a server does not signal it
        hosts = f"{primary.address}:{primary.port},{standby.address}:{standby.port}"
        yield ReplicatedServer(primary, standby, f"postgresql://postgres@{hosts}/postgres")


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
def _disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Make a small disk that the server's user may use."""
    with small_disk(folder, megabytes=megabytes) as disk:
        shutil.chown(folder, "postgres")
        yield disk


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


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # a session that has ended
        os.kill(process, number)


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _as_user(user: str) -> list[str]:
    return ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
