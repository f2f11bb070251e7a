"""Whether the path of an open state file still names this file and its log."""

from __future__ import annotations

from pathlib import Path

from ingestd.mirror.sqlite.state_file.failures import moved, unreachable


class FilePlace:
    """The device and the inode of a file that SQLite has opened, and of its log, which exists while the file is open."""

    def __init__(self, path: Path) -> None:
        """Remember the present files. Raise `OSError` if they can't be examined."""
        self._path = path
        self._found = self._find()

    def check(self) -> None:
        """Refuse to use a file that was moved, replaced or removed, because SQLite would continue to write to it.

        Raises:
            MirrorFull: the file or its log was moved, replaced or removed, or can't be examined.
        """
        try:
            found = self._find()
        except OSError as error:
            raise unreachable(error, self._path) from error
        if found != self._found:
            raise moved(self._path)

    def _find(self) -> list[tuple[int, int] | None]:
        return [_identity(file) for file in (self._path, self._path.with_name(f"{self._path.name}-wal"))]


def _identity(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
