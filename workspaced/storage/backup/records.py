"""Copy the records with SQLite's online backup or pg_dump: the state of one moment, without blocking others."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

from workspaced.storage.address import Address, PostgresAddress, sqlite_address
from workspaced.storage.disk import flush
from workspaced.storage.port import StorageUnusable

DUMP = "workspaced.dump"


def copy_records(address: Address, folder: Path) -> None:
    """Write ``workspaced.db`` or ``workspaced.dump`` into the folder.

    Raises:
        StorageUnusable: it can't be done; the message has the reason.
    """
    if isinstance(address, PostgresAddress):
        _dump(address, folder / DUMP)
    else:
        _copy(address, sqlite_address(folder))


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise StorageUnusable(f"There is no database {source}. Give the data folder of a service that has run.")
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    writing = sqlite3.connect(target)
    try:
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except sqlite3.Error as error:
        raise StorageUnusable(f"The database {source} can't be copied ({error}).") from error
    finally:
        writing.close()
        reading.close()
    target.chmod(0o600)


def _dump(address: PostgresAddress, target: Path) -> None:
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415  not installed where there is no PostgreSQL

    parameters = dict(address.parameters)
    password = parameters.pop("password", "")  # an argument would be visible to all users of this machine
    command = [
        "pg_dump",
        "--format=custom",
        "--no-password",
        f"--file={target}",
        "--dbname",
        make_conninfo(**parameters),
    ]
    environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  fixed arguments
    except FileNotFoundError as error:
        raise StorageUnusable(
            "A backup of PostgreSQL needs pg_dump, which is not on this machine's PATH. Install PostgreSQL's client programs "
            "(Debian: postgresql-client), of the server's version or newer."
        ) from error
    if ended.returncode != 0:
        message = " ".join(ended.stderr.split())
        if password:
            message = message.replace(password, "…")
        raise StorageUnusable(f"pg_dump could not copy the database {address}: {message}")
    target.chmod(0o600)
    flush(target)
