"""The files of lookups: read when they change, and compared by time, size and content."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from ingestd.core.errors import SourceUnavailable
from ingestd.core.mapping import Table, TableSource

_BYTES = 16 * 2**20
_RECENT_SECONDS = 2.0
"""A file that was written within this time may be written again without a new file time, so its content is compared."""


class _TableFile(msgspec.Struct, frozen=True, kw_only=True):
    signature: tuple[int, ...] | None
    sha256: str
    table: Table


class LookupFiles:
    """Reads the tables of one mapping. A relative path starts at ``base``. ``now``: seconds since the epoch."""

    def __init__(self, sources: Iterable[TableSource], *, base: Path, now: Callable[[], float] = time.time) -> None:
        self._sources = tuple(sources)
        self._base = base.absolute()
        self._now = now
        self._known: dict[TableSource, _TableFile] = {}
        self._tried: dict[TableSource, tuple[int, ...] | None] = {}

    def __bool__(self) -> bool:
        """Return whether there are any tables."""
        return bool(self._sources)

    def may_differ(self) -> bool:
        """Return whether the time or the size of a file changed since the last `read`; no content is read."""
        return any(
            source not in self._tried or self._tried[source] != _signature(self._base / source.file)
            for source in self._sources
        )

    def read(self) -> Mapping[TableSource, Table] | None:
        """Return all tables, or None if no table has changed.

        Raises:
            SourceUnavailable: a file can't be read or used; the earlier tables are kept.
        """
        found = {source: self._read(source) for source in self._sources}
        former = {source: known.table for source, known in self._known.items()}
        tables = {source: one.table for source, one in found.items()}
        self._known = found
        return tables if tables != former else None

    def _read(self, source: TableSource) -> _TableFile:
        path = self._base / source.file
        signature = self._tried[source] = _signature(path)
        known = self._known.get(source)
        if known is not None and signature is not None and known.signature == signature:
            return known
        try:
            content = _read_bounded(path)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SourceUnavailable(f"The lookup file {path} can't be read: {reason}.") from None
        if len(content) > _BYTES:
            raise SourceUnavailable(
                f"The lookup file {path} is larger than {_BYTES // 2**20} MiB. Remove rows and columns that no lookup needs."
            )
        if signature is not None and abs(self._now() - signature[0] / 1e9) < _RECENT_SECONDS:
            signature = self._tried[source] = None
        sha256 = hashlib.sha256(content).hexdigest()
        same = known is not None and known.sha256 == sha256
        table = known.table if known is not None and same else parse_table(content, source, path)
        return _TableFile(signature=signature, sha256=sha256, table=table)


def parse_table(content: bytes, source: TableSource, path: Path) -> Table:
    """Return the values of a table by key.

    Raises:
        SourceUnavailable: the content is no CSV table with the columns of ``source``, or has a key twice.
    """

    def problem(sentence: str) -> SourceUnavailable:
        return SourceUnavailable(f"The lookup file {path} can't be used: {sentence}")

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise problem(f"byte {error.start + 1} is not UTF-8. Save the file as UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=source.delimiter, strict=True)
    table: dict[str, str] = {}
    lines: dict[str, int] = {}
    try:
        header = next(reader, [])
        for name in (source.key, source.value):
            if header.count(name) != 1:
                times = "no column" if name not in header else "more than one column"
                raise problem(f"it has {times} '{name}'; its columns are {', '.join(header) or 'none'}.")
        key_at, value_at = header.index(source.key), header.index(source.value)
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise problem(f"line {reader.line_num} has {len(row)} fields, and the header has {len(header)}.")
            key = row[key_at]
            if key in table:
                raise problem(
                    f"line {reader.line_num} has the same '{source.key}' as line {lines[key]}: '{key}'. Remove one of them."
                )
            table[key], lines[key] = row[value_at], reader.line_num
    except csv.Error as error:
        raise problem(f"line {reader.line_num} is no CSV: {error}.") from None
    return table


def _read_bounded(path: Path) -> bytes:
    """Return the content of a file, at most one byte more than the limit."""
    # Without O_NONBLOCK, opening a pipe with this name would block until the pipe has a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SourceUnavailable(f"The lookup file {path} can't be read: it is not a regular file.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_BYTES + 1)
    finally:
        os.close(descriptor)


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return the times (ns), size and inode of a file; None if it can't be examined."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
