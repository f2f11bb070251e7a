"""SQLite connections of a process that dies at a chosen statement.

From that moment on nothing is executed any more, no rollback and no commit either, as after kill -9. `take_the_disk`
then keeps what a new process would find: the database and its log as they are, not what closing them would make of them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ingestd.mirror.sqlite import SqliteMirror

T = TypeVar("T")


class ProcessDied(BaseException):
    """Represents the death of the process: no handler of ours may catch it."""


class Fuse:
    """Blows at point ``at``, counted from 1 over all threads.

    Points are before every statement, and after every commit: only there does something differ from the point before, as
    only commits last.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self._lock = threading.Lock()
        self.count = 0
        self.statement = ""

    @property
    def blown(self) -> bool:
        return bool(self.statement)

    def spend(self, statement: str) -> None:
        with self._lock:
            self.count += 1
            if self.count == self._at:
                self.statement = statement
            if self.blown:
                raise ProcessDied(statement)


class DyingConnection(sqlite3.Connection):
    """Every statement that goes through it spends the fuse; made by `dying`."""

    fuse: Fuse
    opened: list[DyingConnection]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened.append(self)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return self._spent(sql, lambda: super(DyingConnection, self).execute(sql, *parameters))

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return self._spent(sql, lambda: super(DyingConnection, self).executemany(sql, rows))

    def executescript(self, sql: str) -> sqlite3.Cursor:
        """A script is many statements: each may be the last."""
        cursor = self.cursor()
        for statement in _statements(sql):
            self._spent(statement, lambda statement=statement: cursor.execute(statement))  # type: ignore[misc]
        return cursor

    def _spent(self, sql: str, execute: Callable[[], T]) -> T:
        self.fuse.spend(sql)
        done = execute()
        if sql.strip().rstrip(";") == "COMMIT":
            self.fuse.spend("(after a COMMIT)")
        return done


def dying(fuse: Fuse) -> type[DyingConnection]:
    """A factory of connections that share a fuse; ``opened`` of the class lists them."""
    return type("Dying", (DyingConnection,), {"fuse": fuse, "opened": []})


def take_the_disk(path: Path, to: Path) -> None:
    """Copy the state file to a new place as it is on the disk: the database and what its log holds."""
    to.parent.mkdir(parents=True)
    for end in ("", "-wal"):
        file = path.with_name(path.name + end)
        if file.exists():
            shutil.copyfile(file, to.with_name(to.name + end))


def die_at(template: Path, place: Path, point: int, work: Callable[[SqliteMirror], None]) -> Fuse:
    """Do ``work`` on a copy of a state file until the fuse blows at ``point``. A new process finds the state in ``place``."""
    life = place.parents[1] / "state.db"
    life.parent.mkdir()
    shutil.copyfile(template, life)
    fuse = Fuse(point)
    factory = dying(fuse)
    mirror: SqliteMirror | None = None
    try:
        mirror = SqliteMirror.open(life, factory=factory)
        work(mirror)
    except ProcessDied:
        pass
    take_the_disk(life, place)
    if mirror is not None:
        for thread in (mirror.delivery._reads, mirror.delivery._writes, mirror.rejected._thread, mirror.drift._thread):
            thread.shutdown()
        os.close(mirror._state._lock)
    for connection in factory.opened:
        sqlite3.Connection.close(connection)
    return fuse


def _statements(script: str) -> list[str]:
    statements, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements
