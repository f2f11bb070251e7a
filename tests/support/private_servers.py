"""Database servers of one's own in temporary folders, as `.ci/run` starts one: a test may stop, damage and configure them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql
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
        command = [*_as_user("postgres"), str(self._programs / program), "-D", str(self.data), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=_DEADLINE_SECONDS, cwd=self._folder)

    def start(self) -> None:
        options = [f"-p {self.port}", "-c listen_addresses=127.0.0.1", f"-k {self._folder}", "-F", *self._settings]
        self.run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", " ".join(options), "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-w", "-m", mode, "stop")

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


class MariadbServer:
    """A MariaDB server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"mysql://root@127.0.0.1:{port}/test"

    def connect(self, **more: Any) -> pymysql.connections.Connection[Any]:
        settings: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "user": "root", "autocommit": True} | more
        return pymysql.connect(**settings)


@contextmanager
def mariadb_server() -> Iterator[MariadbServer]:
    """Start a server with the database ``test``."""
    program = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("no MariaDB to test with: install Debian's package mariadb-server")
    with _folder("mysql") as folder:
        data, server = folder / "data", MariadbServer(_free_port())
        user = ["--user=mysql"] if os.geteuid() == 0 else []
        install = ["mariadb-install-db", "--no-defaults", *user, f"--datadir={data}", "--auth-root-authentication-method=normal"]
        subprocess.run(install, check=True, capture_output=True, timeout=_DEADLINE_SECONDS)
        options = [
            "--no-defaults", *user, f"--datadir={data}", f"--port={server.port}", "--bind-address=127.0.0.1",
            f"--socket={folder}/socket", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([program, *options], stdout=log, stderr=log)
        try:
            _wait_for(server, process)
            with server.connect() as connection:
                connection.cursor().execute("CREATE DATABASE IF NOT EXISTS test")
            yield server
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _wait_for(server: MariadbServer, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _DEADLINE_SECONDS
    while True:
        try:
            server.connect().close()
        except pymysql.err.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)  # the server reports its readiness only in its log
        else:
            return


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
