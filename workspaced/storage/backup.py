"""A backup of all stored data, made while the service runs: first the records, then the bytes that they name."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from workspaced.storage.address import Address, PostgresAddress, sqlite_address
from workspaced.storage.disk import flush
from workspaced.storage.port import StorageUnusable

_DUMP = "workspaced.dump"
_SHARD = re.compile(r"[0-9a-f]{2}")


def back_up(address: Address, blobs: Path, folder: Path) -> int:
    """Create ``folder`` with the records and a copy of every file in ``blobs``; return the number of copied files.

    All bytes that the records name are in it: bytes never change, and none is deleted meanwhile.

    Raises:
        StorageUnusable: it can't be made; the message has the reason. Nothing remains of it.
    """
    if folder.exists():
        raise StorageUnusable(
            f"{folder} exists already. Give a folder that does not exist: a backup never changes one."
        )
    unfinished = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(mode=0o700, parents=True)
        with _copied_bytes(blobs, unfinished / "blobs") as copy:
            _copy_records(address, unfinished)
            count = copy()
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


@contextmanager
def _copied_bytes(blobs: Path, target: Path) -> Iterator[Callable[[], int]]:
    """Prevent deletions in the folder during the block; yield a function that copies all bytes that exist when it is called.

    Each shard is held with the shared lock that excludes the sweep. Uploads continue.

    Raises:
        OSError: reading or writing failed.
    """
    with ExitStack() as held:
        known: list[Path] = []

        def hold() -> None:
            for shard in sorted(blobs.iterdir()) if blobs.is_dir() else ():
                if shard not in known and _SHARD.fullmatch(shard.name):
                    descriptor = os.open(shard, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    held.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_SH)
                    known.append(shard)

        def copy() -> int:
            hold()  # shards that were added since
            target.mkdir(mode=0o700)
            return sum(_copy_shard(shard, target / shard.name) for shard in known)

        hold()
        yield copy


def _copy_shard(shard: Path, target: Path) -> int:
    target.mkdir(mode=0o700)
    count = 0
    for source in shard.iterdir():
        copied = target / source.name
        shutil.copyfile(source, copied)
        copied.chmod(0o600)
        flush(copied)
        count += 1
    flush(target)
    return count
