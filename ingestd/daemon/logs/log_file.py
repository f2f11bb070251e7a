"""The lines of a log file and of its rotated files, also while it grows. Memory is bounded by the longest line."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, TypeAlias, cast

import msgspec

LONGEST_LINE = 1 << 20
"""Bytes. The rest of a longer line is replaced by an ellipsis."""
POLL_SECONDS = 0.2
"""How often a followed file is read: like `tail -F`, because the log of a busy daemon is written all the time."""

_CUT = " …"


Wait: TypeAlias = Callable[[float], object]
"""Waits for some seconds before a followed file is read again."""


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """A log file. Rotated files are beside it: ``FILE.1`` is newer than ``FILE.2`` or ``FILE.2.gz``."""

    path: Path

    def exists(self) -> bool:
        """Return True if the file or a rotated file exists."""
        return bool(self.files())

    def files(self) -> list[Path]:
        """Return the file, if it exists, and its rotated files, the newest first."""
        return [self.path, *self.rotated()] if self.path.exists() else self.rotated()

    def rotated(self) -> list[Path]:
        """Return the rotated files, the newest first."""
        name = re.compile(rf"{re.escape(self.path.name)}\.(\d{{1,9}})(?:\.gz)?")
        try:
            beside = [path.name for path in self.path.parent.iterdir()]
        except FileNotFoundError:
            return []
        numbered = [(int(found[1]), found[0]) for found in map(name.fullmatch, beside) if found]
        return [self.path.parent / name for _, name in sorted(numbered)]

    def lines(self, path: Path) -> Iterator[str]:
        """Yield the lines of one of the `files`, the oldest first.

        A last line without an end is yielded too: the daemon may have ended while it wrote it.

        Raises:
            OSError: the file can't be read, or it is not what its name says.
        """
        with _opened(path) as file:
            while (line := _next_line(file)) is not None:
                yield line

    def open(self) -> GrowingFile:
        """Open the file for reading while it grows; it may be missing."""
        return GrowingFile(self.path)


class GrowingFile:
    """An open log file that is read to its end, and then further through rotation and truncation.

    A renamed file is read beside its successor until it is deleted, or until the next rotation, because the daemon writes to the
    file that it has open.
    A line is yielded when it is complete. No line is lost or repeated between `until_now` and `from_now`. Both raise `OSError`
    if the file can't be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending = _PendingLine()
        self._file = self._opened()
        self._renamed: tuple[BufferedReader, _PendingLine] | None = None

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            self._file.close()
        if self._renamed is not None:
            self._renamed[0].close()

    def until_now(self) -> Iterator[str]:
        """Yield the complete lines that were written and not yielded yet."""
        if self._file is not None:
            yield from self._pending.add_all(self._file)

    def from_now(self, *, wait: Wait = time.sleep) -> Iterator[str]:
        """Yield lines when they are written, without an end. A missing file is awaited."""
        while True:
            yield from self._renamed_lines()
            yield from self.until_now()
            if self._is_truncated():
                self._pending = _PendingLine()
            elif self._is_replaced():
                yield from self._end_renamed()
                if self._file is not None:
                    self._renamed = self._file, self._pending
                self._file, self._pending = self._opened(), _PendingLine()
            else:
                wait(POLL_SECONDS)

    def _renamed_lines(self) -> Iterator[str]:
        """Yield what was written to the renamed file; close it if it is deleted."""
        if self._renamed is None:
            return
        file, pending = self._renamed
        yield from pending.add_all(file)
        if os.fstat(file.fileno()).st_nlink == 0:
            yield from self._end_renamed()

    def _end_renamed(self) -> Iterator[str]:
        """Close the renamed file after its last lines."""
        if self._renamed is None:
            return
        file, pending = self._renamed
        self._renamed = None
        with file:
            yield from pending.add_all(file)
            yield from pending.rest()

    def _opened(self) -> BufferedReader | None:
        with suppress(FileNotFoundError):
            return self._path.open("rb")
        return None

    def _is_truncated(self) -> bool:
        """Begin again if the file became shorter, as by `copytruncate` of logrotate. Return True if it did."""
        file = self._file
        if file is None or os.fstat(file.fileno()).st_size >= file.tell():
            return False
        file.seek(0)
        return True

    def _is_replaced(self) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False  # between the steps of a rotation
        if self._file is None:
            return True
        then = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino)


class _PendingLine:
    """The beginning of a line that is being written, at most ``LONGEST_LINE`` bytes of it."""

    def __init__(self) -> None:
        self._begun = b""

    def add_all(self, file: IO[bytes]) -> Iterator[str]:
        while chunk := file.readline(LONGEST_LINE):
            self._begun += chunk[: LONGEST_LINE + 1 - len(self._begun)]
            if chunk.endswith(b"\n"):
                yield from self.rest()

    def rest(self) -> Iterator[str]:
        begun, self._begun = self._begun, b""
        if begun:
            yield _text(begun)


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _next_line(file: IO[bytes]) -> str | None:
    """Return the next line, None at the end. Of a longer line than ``LONGEST_LINE`` the beginning is returned."""
    begun = file.readline(LONGEST_LINE)
    if not begun:
        return None
    chunk = begun
    while chunk and not chunk.endswith(b"\n"):
        chunk = file.readline(LONGEST_LINE)
        begun = begun if not chunk or len(begun) > LONGEST_LINE else begun + chunk[:1]
    return _text(begun)


def _text(line: bytes) -> str:
    line = line.rstrip(b"\r\n")
    text = line[:LONGEST_LINE].decode(errors="backslashreplace")
    return text + _CUT if len(line) > LONGEST_LINE else text
