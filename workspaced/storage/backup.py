"""A backup of all stored data, made while the service runs: first the records, then the bytes that they name."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ingestd.process.postgres_address import PostgresAddress
from workspaced.storage.address import Address, sqlite_address
from workspaced.storage.blobs.blobs import GRACE_MS
from workspaced.storage.blobs.port import IDENTITY
from workspaced.storage.disk import flush
from workspaced.storage.port import StorageUnusable
from workspaced.storage.sqlite_store import require_own_log

if TYPE_CHECKING:
    from workspaced.storage.postgres_connection import PostgresConnection

_DUMP = "workspaced.dump"
_SHARD = re.compile(r"[0-9a-f]{2}")


def back_up(address: Address, blobs: Path | None, folder: Path) -> int:
    """Create ``folder`` with the records and, unless ``blobs`` is None, a copy of each file in it; return the number of files.

    The backup has all bytes that its records name, because bytes never change, and the service keeps the bytes of deleted
    records for `GRACE_MS`.

    Raises:
        StorageUnusable: the backup can't be made; the message has the reason. Nothing remains of the backup.
    """
    if folder.exists():
        raise StorageUnusable(
            f"{folder} exists already. Give a folder that does not exist: a backup never changes an existing folder."
        )
    unfinished = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(mode=0o700, parents=True)
        begun = time.monotonic()
        _copy_records(address, unfinished)
        count = 0 if blobs is None else _copy_bytes(blobs, unfinished / "blobs")
        if time.monotonic() - begun > GRACE_MS / 1_000:
            raise StorageUnusable(
                f"The backup took more than {GRACE_MS // 3_600_000} hours, so the service may have deleted bytes that it needs. "
                "Write it to a faster disk."
            )
        unfinished.rename(folder)
        flush(folder.parent)
    except OSError as error:
        where = error.filename or folder
        raise StorageUnusable(f"The backup can't be made: {where}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return count


def _copy_records(address: Address, folder: Path) -> None:
    """Write ``workspaced.db`` or ``workspaced.dump`` into the folder."""
    if isinstance(address, PostgresAddress):
        _dump(address, folder / _DUMP)
    else:
        _copy_sqlite(address, sqlite_address(folder))


def _copy_sqlite(source: Path, target: Path) -> None:
    if not source.is_file():
        raise StorageUnusable(f"There is no database {source}. Give the data folder of a service that has run.")
    require_own_log(source)
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    writing = sqlite3.connect(target)
    try:
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")  # one file, without a separate log file
    except sqlite3.Error as error:
        raise StorageUnusable(f"The database {source} can't be copied ({error}).") from error
    finally:
        writing.close()
        reading.close()
    target.chmod(0o600)


def _dump(address: PostgresAddress, target: Path) -> None:
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415  not installed where there is no PostgreSQL

    from ingestd.process.postgres_connection import SILENT_SECONDS  # noqa: PLC0415
    from workspaced.storage.postgres_connection import connect  # noqa: PLC0415

    parameters = dict(address.parameters)
    password = parameters.pop("password", "")  # an argument would be visible to all users of this machine
    environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    try:
        with connect(address) as connection:
            parameters |= connection.place
            command = ["pg_dump", "--format=custom", "--no-password", f"--file={target}"]
            with subprocess.Popen(  # noqa: S603  fixed arguments
                [*command, "--dbname", make_conninfo(**parameters)], env=environment, stderr=subprocess.PIPE, text=True
            ) as dumping:
                errors = _wait_while_login_works(dumping, connection, every_seconds=SILENT_SECONDS)
    except FileNotFoundError as error:
        raise StorageUnusable(
            "A backup of PostgreSQL needs pg_dump, which is not on this machine's PATH. Install PostgreSQL's client programs "
            "(Debian: postgresql-client), of the server's version or newer."
        ) from error
    if dumping.returncode != 0:
        message = " ".join(errors.split())
        if password:
            message = message.replace(password, "…")
        raise StorageUnusable(f"pg_dump could not copy the database {address}: {message}")
    target.chmod(0o600)
    flush(target)


def _wait_while_login_works(
    process: subprocess.Popen[str], connection: PostgresConnection, *, every_seconds: float
) -> str:
    """Return the standard error of the process after its end. Kill the process if the server no longer responds to a login."""
    while True:
        try:
            return process.communicate(timeout=every_seconds)[1]
        except subprocess.TimeoutExpired:
            if not connection.responds_to_login():
                process.kill()
                return f"{process.communicate()[1]} the server does not respond any more"
        except BaseException:
            process.kill()
            raise


def _copy_bytes(blobs: Path, target: Path) -> int:
    """Copy the bytes and the identity of a folder; return the number of copied files, without the identity.

    Raises:
        OSError: reading or writing failed.
    """
    target.mkdir(mode=0o700)
    shards = [entry for entry in blobs.iterdir() if _SHARD.fullmatch(entry.name)] if blobs.is_dir() else []
    count = sum(_copy_shard(shard, target / shard.name) for shard in sorted(shards))
    if (blobs / IDENTITY).exists():  # the first start of the service creates it
        _copy_file(blobs / IDENTITY, target / IDENTITY)
    flush(target)
    return count


def _copy_shard(shard: Path, target: Path) -> int:
    target.mkdir(mode=0o700)
    count = 0
    for source in shard.iterdir():
        try:
            _copy_file(source, target / source.name)
        except FileNotFoundError:  # the file was deleted meanwhile; the copied records do not refer to it
            continue
        count += 1
    flush(target)
    return count


def _copy_file(source: Path, copied: Path) -> None:
    shutil.copyfile(source, copied)
    copied.chmod(0o600)
    flush(copied)
