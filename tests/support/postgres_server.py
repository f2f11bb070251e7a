"""PostgreSQL servers in temporary folders, which a test may stop, damage and configure."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
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

from tests.support.free_port import free_port
from tests.support.network_hosts import Host
from tests.support.small_disk import Disk, small_disk

_DEADLINE_SECONDS = 60.0


class PostgresServer:
    """A PostgreSQL server on this machine or a host. `run` executes a program of PostgreSQL on the server's data."""

    def __init__(
        self, folder: Path, programs: Path, settings: Sequence[str], host: Host | None = None, disk: Disk | None = None
    ) -> None:
        self._host = host
        self.disk = disk
        """The small disk of its folder, if it has one."""
        self.address = host.address if host else "127.0.0.1"
        self._folder = self._first_folder = folder
        self._programs = programs
        self._settings = settings
        self.data = folder / "data"
        self.port = free_port()
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
        """Return whether the server's main process exists."""
        try:
            os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), 0)
        except (OSError, IndexError):
            return False
        return True

    def kill(self) -> None:
        """Kill all processes of the server, and delete its data, because a former primary must not start again."""
        server = int((self.data / "postmaster.pid").read_text().split()[0])
        for process in [server, *_children(server)]:
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.data, ignore_errors=True)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server if it is running."""
        if self.is_running():
            self.run("pg_ctl", "-w", "-m", mode, "stop")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the server without a shutdown checkpoint, and start it again after the block."""
        self.stop("immediate")
        try:
            yield
        finally:
            self.start()

    def crash(self) -> None:
        """Stop the server without a shutdown checkpoint, and start it again."""
        with self.stopped():
            pass

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze all processes of the server during the block. The kernel still accepts connections and confirms packets."""
        server = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(server, signal.SIGSTOP)  # first, so that it starts no further processes
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
        """Start a standby of this server. ``port`` 0: a free port; ``megabytes``: the size of its own disk; 0: no own disk."""
        # Not in the folder of this server, because the path of a Unix socket has at most 107 bytes.
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
        """Wait until the standby has replayed all writes to this server."""
        with self.connect() as primary, standby.connect() as follower:
            (end,) = primary.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
            until = time.monotonic() + _DEADLINE_SECONDS
            reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while not (follower.execute(reached, (end,)).fetchone() or (False,))[0]:
                if time.monotonic() > until:
                    raise AssertionError("the standby does not follow")
                time.sleep(0.02)  # a standby does not notify clients about its replay

    def copy(self, target: Path) -> None:
        """Copy the data of the stopped server, with its owner and its permissions."""
        subprocess.run(["cp", "-a", str(self.data), str(target)], check=True, timeout=_DEADLINE_SECONDS)

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True, **more)

    def connect_locally(self) -> psycopg.Connection[Any]:
        """Connect through the Unix socket, without the network."""
        return self.connect(host=str(self._folder), hostaddr="")


@contextmanager
def postgresql_server(*settings: str, host: Host | None = None, megabytes: int = 0) -> Iterator[PostgresServer]:
    """Start a server with ``settings`` such as ``-c max_prepared_transactions=10``, on this machine or ``host``.

    ``megabytes``: the size of the server's own disk; 0: no own disk.
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
    """A primary and a standby. Each commit waits for the standby. ``url`` contains both addresses."""

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
                time.sleep(0.02)  # a server does not notify clients of this
        hosts = f"{primary.address}:{primary.port},{standby.address}:{standby.port}"
        yield ReplicatedServer(primary, standby, f"postgresql://postgres@{hosts}/postgres")


@cache
def server_of_tests() -> str:
    """Return INGESTD_TEST_POSTGRES_URL, or the URL of a server that ends with this process. Without both, skip the test."""
    given = os.environ.get("INGESTD_TEST_POSTGRES_URL")
    if given:
        return given
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgresql_server()).url


@contextmanager
def _disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Create a small disk that the server's user may use."""
    with small_disk(folder, megabytes=megabytes) as disk:
        shutil.chown(folder, "postgres")
        yield disk


@contextmanager
def _folder(user: str) -> Iterator[Path]:
    """Create a folder that the server's user may use. Other users can't use pytest's folders."""
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
