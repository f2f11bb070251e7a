"""Servers that a test starts and stops, from Debian's packages: MariaDB, and PgBouncer in front of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest

from tests.support.free_port import free_port

_START_SECONDS = 60.0


class Pooler(NamedTuple):
    """A running PgBouncer. ``host``: host and port; ``log``: its log file."""

    host: str
    log: Path


class MariadbServer:
    """A MariaDB server with an empty database ``test``."""

    def __init__(self, url: str, command: list[str], log: Path) -> None:
        self.url = url
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)
        _until(lambda: mariadb_connection(self.url, database="").close(), self._log)

    def stop(self) -> None:
        """Stop the server. Open transactions are rolled back, prepared transactions are kept."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=_START_SECONDS)

    def restart(self) -> None:
        self.stop()
        self.start()

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)


@contextmanager
def mariadb_server() -> Iterator[str]:
    """Yield INGESTD_TEST_MARIADB_URL or, if it is not set, the URL of an empty database ``test`` of a new server."""
    given = os.environ.get("INGESTD_TEST_MARIADB_URL")
    if given:
        yield given
        return
    with restartable_mariadb_server() as server:
        yield server.url


@contextmanager
def restartable_mariadb_server() -> Iterator[MariadbServer]:
    """Run a MariaDB server with its files in a temporary folder."""
    server, install = _program("mariadbd", "mariadb-server"), _program("mariadb-install-db", "mariadb-server")
    with tempfile.TemporaryDirectory(prefix="mariadb-") as folder:
        data, port = f"--datadir={folder}/data", free_port()
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(
            [install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db", *user],
            check=True,
            capture_output=True,
        )
        options = [
            "--bind-address=127.0.0.1",
            f"--port={port}",
            f"--socket={folder}/s",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        url = f"mariadb://root@127.0.0.1:{port}/test"
        running = MariadbServer(url, [server, "--no-defaults", data, *options, *user], Path(folder) / "log")
        running.start()
        try:
            with mariadb_connection(url, database="") as connection:
                connection.cursor().execute("CREATE DATABASE test CHARACTER SET utf8mb4")
            yield running
        finally:
            running.stop()


def mariadb_connection(url: str, *, database: str | None = None) -> pymysql.Connection[pymysql.cursors.Cursor]:
    """Return a connection that commits each statement."""
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        database=parts.path[1:] if database is None else database or None,
        autocommit=True,
        charset="utf8mb4",
    )


@contextmanager
def pgbouncer(server: str, users: Mapping[str, str], **settings: str) -> Iterator[Pooler]:
    """Run a PgBouncer with transaction pooling and one connection to ``server``. ``users``: password by user."""
    program = _program("pgbouncer", "pgbouncer")
    backend = psycopg.conninfo.conninfo_to_dict(server)
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        folder, port = Path(name), free_port()
        (folder / "users").write_text("".join(f'"{user}" "{password}"\n' for user, password in users.items()))
        known = {"host": "127.0.0.1", "port": 5432, "user": "postgres"} | backend
        target = " ".join(f"{name}={known[name]}" for name in ("host", "port", "user", "password") if name in known)
        lines = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(port),
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": str(folder / "users"),
            "pool_mode": "transaction",
            "default_pool_size": "1",
            **settings,
        }
        configuration = "".join(f"{key} = {value}\n" for key, value in lines.items())
        (folder / "ini").write_text(f"[databases]\n* = {target}\n[pgbouncer]\n{configuration}")
        account = None
        if os.geteuid() == 0:  # PgBouncer refuses to run as root
            account = "postgres"
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, account)
        with _running([program, str(folder / "ini")], folder / "log", user=account):
            _until(lambda: socket.create_connection(("127.0.0.1", port), timeout=5).close(), folder / "log")
            yield Pooler(host=f"127.0.0.1:{port}", log=folder / "log")


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if found is None:
        pytest.skip(f"no {name} to test with: install Debian's package {package}")
    return found


@contextmanager
def _running(command: list[str], log: Path, user: str | None = None) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, user=user)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=_START_SECONDS)


def _until(attempt: Callable[[], None], log: Path) -> None:
    """Repeat ``attempt`` until the server responds, which is the only signal that it has started."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            attempt()
        except (OSError, pymysql.Error):
            if time.monotonic() > end:
                raise AssertionError(f"the server did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return
