"""Methods that read everything: at each reading, or at each reading after a SQLite file has changed."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, State
from connectors.database.port import ReadSession, SqlDialect

FILE_GUARANTEE = Guarantee(
    method="data_version",
    sentence=(
        "Each reading finds every change, also deleted rows: the file is read whole after every commit,"
        " and not between two commits, because PRAGMA data_version shows each commit. After a start it is read once."
    ),
)


class WholeReading(ChangeMethod):
    """Reads everything at each reading."""

    remembers: ClassVar[bool] = False

    def server(self, session: ReadSession) -> str:  # noqa: ARG002 - every reading is complete
        """See `ChangeMethod.server`."""
        return ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        return ReadPlan(None, {})


class DataVersion(WholeReading):
    """Reads a whole SQLite file after a commit.

    A connection stays open between readings, because values of ``data_version`` are comparable only within one connection.
    """

    remembers: ClassVar[bool] = True

    def __init__(self, dialect: SqlDialect, path: Path) -> None:
        super().__init__(dialect, FILE_GUARANTEE)
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._opened = 0

    def version(self) -> object | None:
        """See `ChangeMethod.version`. Return None if the file can't be opened: then the reading reports the reason."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - the inode number shows that the file was replaced
            if not stat.S_ISREG(status.st_mode):
                self.close()
                return None
            if self._connection is None or self._file != (status.st_dev, status.st_ino):
                self.close()
                address = f"file:{quote(str(self._path.absolute()))}?mode=ro"
                self._connection = sqlite3.connect(address, uri=True, timeout=0, check_same_thread=False)
                self._file, self._opened = (status.st_dev, status.st_ino), self._opened + 1
            # The ctime changes also if the content is replaced in the same inode and ``data_version`` stays equal.
            return (self._opened, self._connection.execute("PRAGMA data_version").fetchone()[0], status.st_ctime_ns)
        except (OSError, sqlite3.Error):
            self.close()
            return None

    def close(self) -> None:
        """Close the connection that stays open between readings."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection, self._file = None, None
