"""Whether the path of an open SQLite database still names this database and its log."""

from __future__ import annotations

from pathlib import Path


class DatabaseFiles:
    """The device and the inode of a database, and of its log, which exists from the first reading until the database is closed.

    SQLite would continue to use a file that was moved, replaced or removed.
    """

    def __init__(self, path: Path) -> None:
        """Remember the present files. Raise `OSError` if they can't be examined."""
        self._paths = (path, path.with_name(f"{path.name}-wal"))
        self._found = self._find()

    def are_in_place(self) -> bool:
        """Return whether the paths still name the remembered files. Raise `OSError` if they can't be examined."""
        return self._find() == self._found

    def _find(self) -> list[tuple[int, int] | None]:
        return [_identity(path) for path in self._paths]


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
