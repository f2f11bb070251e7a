"""PostgreSQL servers in temporary folders: a test may stop, damage and configure them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
        command = [*_as_user("postgres"), str(self._programs / program), "-D", str(self.data), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=_DEADLINE_SECONDS, cwd=self._folder)

    def start(self) -> None:
        options = [f"-p {self.port}", "-c listen_addresses=127.0.0.1", f"-k {self._folder}", "-F", *self._settings]
        self.run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", " ".join(options), "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-w", "-m", mode, "stop")

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
