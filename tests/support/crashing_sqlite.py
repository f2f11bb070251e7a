"""SQLite connections of a process that dies at a chosen statement.

From then on nothing is executed, neither a rollback nor a commit, as after kill -9. `copy_database` copies the files that a new
process would find: the database and its log, as they are without a clean close.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ingestd.mirror.sqlite import SqliteMirror

T = TypeVar("T")

_CHANGES_NOTHING = re.compile(r"\s*(SELECT|BEGIN|PRAGMA (?!journal_mode|user_version|application_id))\b")


class ProcessDied(BaseException):
    """Represents the death of the process; the code under test must not catch it."""


class CrashPoint:
    """Lets the process die at point ``at``, counted from 1 over all threads.

    There is a point before each statement outside of a transaction, and before and after each commit. Other statements of a
    transaction have a point only with ``each``, because a death at them leaves the same files as a death before the commit.
    ``outside`` returns the state outside the state file. With ``outside``, a statement that changes nothing has a point only if
    this state differs from that at the last point; else a death at both leaves the same.
    """

    def __init__(self, at: int, *, each: bool = False, outside: Callable[[], object] | None = None) -> None:
        self.at = at
        self._each = each
        self._outside = outside
        self._left: object = None
        self._lock = threading.Lock()
        self.count = 0
        self.statement = ""

    @property
    def reached(self) -> bool:
        return bool(self.statement)

    def count_statement(self, statement: str, *, is_inside: bool = False) -> None:
        """Count a point; raise `ProcessDied` from point ``at`` on. ``is_inside``: it is in a transaction and no COMMIT."""
        with self._lock:
            if self._each or not (is_inside or self._is_repeated(statement)):
                self.count += 1
                if self.count == self.at:
                    self.statement = statement
            if self.reached:
                raise ProcessDied(statement)

    def _is_repeated(self, statement: str) -> bool:
        if self._outside is None:
            return False
        before, self._left = self._left, self._outside()
        return self._left == before and _CHANGES_NOTHING.match(statement) is not None


class CrashingConnection(sqlite3.Connection):
    """A connection that counts its statements with the class's ``crash_point``. `crashing` makes the class."""

    crash_point: CrashPoint
    opened: list[CrashingConnection]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened.append(self)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return self._counted(sql, lambda: super(CrashingConnection, self).execute(sql, *parameters))

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return self._counted(sql, lambda: super(CrashingConnection, self).executemany(sql, rows))

    def executescript(self, sql: str) -> sqlite3.Cursor:
        """Execute and count each statement of a script separately, because the process may die at each."""
        cursor = self.cursor()
        for statement in _statements(sql):
            self._counted(statement, lambda statement=statement: cursor.execute(statement))  # type: ignore[misc]
        return cursor

    def _counted(self, sql: str, execute: Callable[[], T]) -> T:
        is_commit = sql.strip().rstrip(";") == "COMMIT"
        self.crash_point.count_statement(sql, is_inside=self.in_transaction and not is_commit)
        done = execute()
        if is_commit:
            self.crash_point.count_statement("(after a COMMIT)")
        return done


def crashing(crash_point: CrashPoint) -> type[CrashingConnection]:
    """Return a class of connections that share ``crash_point``. Its attribute ``opened`` lists the connections."""
    return type("Dying", (CrashingConnection,), {"crash_point": crash_point, "opened": []})


def copy_database(path: Path, to: Path) -> None:
    """Copy the state file as it is on the disk: the database and its log."""
    to.parent.mkdir(parents=True)
    for end in ("", "-wal"):
        file = path.with_name(path.name + end)
        if file.exists():
            shutil.copyfile(file, to.with_name(to.name + end))


def die_at(template: Path, place: Path, point: int, work: Callable[[SqliteMirror], object]) -> CrashPoint:
    """Do ``work`` on a copy of the state file ``template`` until the crash point. Copy the result to ``place``.

    ``work`` changes nothing except the state file.
    """
    crashed = place.parents[1] / "state.db"
    crashed.parent.mkdir()
    shutil.copyfile(template, crashed)
    crash_point = CrashPoint(point, outside=lambda: None)
    factory = crashing(crash_point)
    mirror: SqliteMirror | None = None
    try:
        mirror = SqliteMirror.open(crashed, factory=factory)
        work(mirror)
    except ProcessDied:
        pass
    copy_database(crashed, place)
    if mirror is not None:
        for thread in (mirror.delivery._reads, mirror.delivery._writes, mirror.rejected._thread, mirror.drift._thread):
            thread.shutdown()
        os.close(mirror._state._lock)
        os.close(mirror.sequence._file)
    for connection in factory.opened:
        sqlite3.Connection.close(connection)
    return crash_point


def each_death(
    template: Path, folder: Path, work: Callable[[SqliteMirror], object], *, after: int = 0
) -> Iterator[tuple[CrashPoint, SqliteMirror]]:
    """Yield each crash point of ``work`` after number ``after``, and the mirror that the next process opens.

    Each run begins with a copy of the state file ``template``. The last crash point is not reached: ``work`` ended before it.
    """
    for point in itertools.count(after + 1):
        place = folder / str(point) / "disk" / "state.db"
        crash_point = die_at(template, place, point, work)
        mirror = SqliteMirror.open(place)
        try:
            yield crash_point, mirror
        finally:
            mirror.close()
        if not crash_point.reached:
            return


def _statements(script: str) -> list[str]:
    statements, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements
