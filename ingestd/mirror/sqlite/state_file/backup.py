"""Backup of a state file while the daemon uses it, and the replacement of a state file by a backup."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

from ingestd.core.errors import MirrorCorrupt, MirrorError
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import copy_unlocked, lock_state
from ingestd.mirror.sqlite.state_file.failures import damaged, named_errors, state_exists, unopenable
from ingestd.mirror.sqlite.state_file.file_owner import give, make_folder, owner_like

KeptFiles: TypeAlias = Iterable[tuple[str, str, bytes]]
"""Pipeline, name and content of private files of connectors. A backup has them in a separate table."""

_TABLE = "CREATE TABLE kept_file (pipeline TEXT NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL)"


def back_up_state(state: Path, target: Path, *, kept: Callable[[], KeptFiles] = tuple) -> int:
    """Copy the state file and the ``kept`` files to the new file ``target`` and check the copy. Return its size in bytes.

    Other processes may use the state file; writers are not delayed. The copy is consistent, in one file with mode 0600.

    Raises:
        MirrorError: there is no state file, or ``target`` exists or can't be written.
        MirrorNewer, MirrorCorrupt, MirrorFull: as in `StateFile`.
    """
    if not state_exists(state):
        raise MirrorError(f"There is no state file {state} yet. 'ingestd run' or 'ingestd sync' creates it.")
    part = target.with_name(f".{target.name}.part")
    try:
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        _copy_durably(state, part, kept=kept())
        part.rename(target)
        _sync_folder(target.parent)
        return target.stat().st_size
    except OSError as error:
        raise MirrorError(
            f"The backup {target} can't be written: {error.strerror}. Name a new file in an existing folder."
        ) from error
    finally:
        part.unlink(missing_ok=True)


def acknowledgeable_partitions(copy: Path) -> frozenset[tuple[int, str]]:
    """Return id and cursor (as JSON) of the partitions in a backup that were read completely and have nothing pending."""
    with named_errors(copy), closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)) as opened:
        return frozenset(opened.execute(SQL["partitions_acknowledgeable"]).fetchall())


def restore_state(
    state: Path, backup: Path, *, restore_kept: Callable[[KeptFiles], None] = lambda _: None
) -> Path | None:
    """Replace the state file by a backup. Return the path at which the replaced file is kept; None if there was no file.

    ``restore_kept`` writes the kept files of the backup, before the state file is replaced. If this process is root, the new
    files get the owner and the group of the former file; if there was no file, the owner and the group of the folder.

    The sequence file stays, so the next start detects that the state file is older than the data of the service. After a crash
    the state file has either the former content or the content of the backup.

    Raises:
        MirrorBusy: another process, such as the daemon, holds the state file.
        MirrorNewer: a newer program wrote the backup.
        MirrorCorrupt: the backup is damaged, or it is not a state file.
        MirrorError: there is no such backup, or the folder can't be written.
    """
    if not state_exists(backup):
        raise MirrorError(f"There is no backup {backup}. Nothing was changed.")
    if not backup.is_file():
        raise MirrorError(f"{backup} is not a regular file, so it is no backup. Nothing was changed.")
    part = state.with_name(f".{state.name}.part")
    try:
        owner = owner_like(state)
        make_folder(state.parent, owner)
        lock = state.with_name(f"{state.name}.lock")
        had_lock = lock.exists()
        with os.fdopen(lock_state(state)):
            if not had_lock:
                give(lock, owner)
            _copy_durably(backup, part)
            give(part, owner)
            restore_kept(_take_kept(part))
            replaced = _keep(state)
            part.replace(state)
            _sync_folder(state.parent)
            return replaced
    except MirrorCorrupt as error:  # its advice is for a state file in use, not for a backup
        raise MirrorCorrupt(error.fact, "Nothing was changed. Restore another backup.") from error
    except OSError as error:
        raise unopenable(error, state) from error
    finally:
        part.unlink(missing_ok=True)


def _take_kept(part: Path) -> list[tuple[str, str, bytes]]:
    """Remove the kept files from a restored copy, and return them."""
    with named_errors(part), closing(sqlite3.connect(part)) as copy:
        if not copy.execute("SELECT 1 FROM sqlite_schema WHERE name = 'kept_file'").fetchone():
            return []
        files = copy.execute("SELECT pipeline, name, content FROM kept_file").fetchall()
        copy.execute("DROP TABLE kept_file")
        copy.commit()
    return files


def _copy_durably(source: Path, part: Path, *, kept: KeptFiles = ()) -> None:
    """Copy a state file to ``part``, and check the copy completely. Replace a ``part`` that an interrupted attempt left."""
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    copy_unlocked(source, part)
    with named_errors(part), closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")  # in WAL mode the copy would be several files
        version = copy.execute("PRAGMA user_version").fetchone()[0]
        if files := list(kept):
            copy.execute(_TABLE)
            copy.executemany("INSERT INTO kept_file VALUES (?, ?, ?)", files)
            copy.commit()
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if not version:
        raise MirrorError(f"{source} is empty, so it is no state file. Nothing was changed.")
    if found != "ok":
        raise damaged(source, " ".join(found.split()))
    with part.open("rb") as written:
        os.fsync(written.fileno())


def _keep(state: Path) -> Path | None:
    """Give the present state file a second name. If it is readable, first move the content of its WAL into the file."""
    if not state.exists():
        return None
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(state)) as present:
        present.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    number = 1
    while (kept := state.with_name(f"{state.name}.replaced-{number}")).exists():
        number += 1
    kept.hardlink_to(state)
    for end in ("-wal", "-shm"):  # a damaged file leaves these; SQLite would read them as the WAL of the new file
        log = state.with_name(state.name + end)
        if log.exists():
            log.rename(kept.with_name(kept.name + end))
    return kept


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
