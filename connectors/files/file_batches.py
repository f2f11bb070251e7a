"""The batches of one file. The last batch is yielded only if the bytes that were read have the hash in its cursor."""

from __future__ import annotations

import hashlib
import io
import os
import pwd
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast

import msgspec
import polars as pl

from connectors.beneath import NotRegularFile, RootedPath
from connectors.files.identity import Identity
from connectors.files.resubmission import is_resubmitted, split_by_origin
from connectors.filesystem import describe_error, real_path
from connectors.formats import Format, RecordChunk
from ingestd.sdk import NOTICE, Batch, Cursor, LoadSections, SourceBroken, SourceUnavailable
from ingestd.sdk.formats import broken_instead_of_failed, check_count
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, row_positions

_BLOCK_BYTES = 2**20

FindEnd = Callable[[BinaryIO], int | None]
"""A function that returns the number of bytes at the start of a file that hold records; None if all bytes do."""
Item = TypeVar("Item")

_MOST_NOTICES = 1_000
SECTIONS_BYTES = 2**20
"""A file below this size is always read as a whole. This takes less time than the comparison of its sections."""


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """An open regular file: its name below the folder, its identity at opening, and its owner.

    ``is_private``: ``file`` is a copy that no other program can write to.
    """

    name: str
    file: io.FileIO
    identity: Identity
    owner: str
    is_private: bool = False

    def sha256(self) -> str:
        """Return the hash of the whole content, and seek to the start of the file."""
        digest = hashlib.file_digest(self.file, "sha256").hexdigest()
        self.file.seek(0)
        return digest

    def compare_content(self, cursor: Cursor | None) -> tuple[str, bool]:
        """Return the hash of the content, and whether ``cursor`` is from a complete reading of the same content.

        Raises:
            SourceUnavailable: the file was written to while it was read.
        """
        sha256 = self.sha256()
        self.check_unchanged()
        return sha256, cursor is not None and "offset" not in cursor and cursor.get("sha256") == sha256

    def check_unchanged(self) -> None:
        """Check that the file was not written to since it was opened.

        Raises:
            SourceUnavailable: the file was written to.
        """
        if self.is_private:
            return
        # A renamed or removed file is still read from its descriptor, and its content is compared by the hash.
        if not Identity.from_status(os.fstat(self.file.fileno())).is_renamed(self.identity):
            raise SourceUnavailable(
                f"{self.name} was written to while it was read; it is read again once it is stable."
            )


def open_file(path: RootedPath, name: str) -> OpenFile:
    """Open a file for reading. The caller closes ``file``.

    Raises:
        FileNotFoundError: the file does not exist any more.
        SourceBroken: it is not a regular file, or ingestd has no permission to read it.
        OSError: its file system does not respond, or the process can open no more files.
    """
    try:
        descriptor = path.open_file()
    except NotRegularFile as error:
        raise SourceBroken(f"{name} is no longer a regular file.") from error
    except PermissionError as error:
        raise SourceBroken(f"{name} can't be opened: {error.strerror}. Allow ingestd's user to read it.") from error
    status = os.fstat(descriptor)
    file = os.fdopen(descriptor, "rb", buffering=0)
    return OpenFile(name=name, file=file, identity=Identity.from_status(status), owner=_user_name(status.st_uid))


class NoticeLog:
    """Calls ``report`` with each new notice of a source. A notice says what a reading guessed or left out."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported: set[str] = set()

    def add(self, name: str, facts: Mapping[str, str]) -> None:
        """Report the notice in the facts of the file ``name``. A missing notice, or a repeated notice, is ignored."""
        notice = facts.get(NOTICE, "")
        if not notice or notice in self._reported:
            return
        if len(self._reported) >= _MOST_NOTICES:
            self._reported.clear()
        self._reported.add(notice)
        self._report(f"{name}: {notice}")


def read_batches(
    opened: OpenFile,
    sha256: str,
    file_format: Format,
    *,
    notices: NoticeLog,
    end: int | None = None,
    known: LoadSections | None = None,
) -> Iterator[Batch]:
    """Yield the batches of a whole file.

    The last batch is yielded only if the content that was read has the hash ``sha256``. ``end``: the number of bytes that
    hold records (None: all bytes). ``notices`` receives a notice about guessed or omitted parts. Every cursor except the
    last has an ``offset``, which shows that the file was not read to its end. ``known`` returns the sections of a large
    file that need not be read (None: everything is read); see `ingestd.sdk.ReadsSections`.

    Raises:
        SourceUnavailable: the file changed while it was read.
        SourceBroken: the file as a whole can't be read in its format.
    """
    facts = _facts(opened, sha256)
    final_cursor = opened.identity.to_cursor(sha256)
    source = _HashingFile(opened.file)
    part = source if end is None else FileHead(cast("BinaryIO", source), end)
    chunk: RecordChunk | None = None
    try:
        if known is None or opened.identity.size < SECTIONS_BYTES or is_resubmitted(opened.name):
            read = partial(file_format.read, cast("BinaryIO", part), opened.name)
        else:
            read = partial(file_format.read_sections, cast("BinaryIO", part), opened.name, known())
        chunks = check_count(broken_instead_of_failed(read, file_format, opened.name), opened.name)
        if opened.identity.size > BLOCK_BYTES:  # a smaller file is one chunk
            chunks = read_ahead(chunks)
        for following in split_by_origin(chunks, opened.name):
            if chunk is not None:
                yield chunk.to_batch({**final_cursor, "offset": chunk.end.offset}, facts)
            chunk = following
    except SourceBroken:
        opened.check_unchanged()  # a file that is being replaced is not broken
        if chunk is not None:  # the records of this chunk come before the damage
            yield chunk.to_batch({**final_cursor, "offset": chunk.end.offset}, facts)
        raise
    if chunk is None:
        raise AssertionError("a format yields at least one chunk")
    opened.check_unchanged()
    if source.hexdigest() != sha256:
        raise SourceUnavailable(f"{opened.name} changed while it was read; it is read again once it is stable.")
    notices.add(opened.name, chunk.facts)
    yield chunk.to_batch(final_cursor, facts, last=True)


def unchanged_batch(opened: OpenFile, sha256: str, cursor: Cursor | None) -> Batch:
    """Return the batch of a file that was touched or dropped again, and still has the content that ``cursor`` describes.

    If the file's identity is also unchanged, a counter makes the new cursor differ from ``cursor``, because only a new
    cursor is acknowledged.
    """
    end = opened.identity.to_cursor(sha256)
    if cursor is not None and opened.identity.matches_cursor(cursor):
        repeated = cursor.get("repeated")
        end["repeated"] = repeated + 1 if isinstance(repeated, int) else 1
    return Batch(
        records=pl.DataFrame(),
        positions=row_positions([]),
        cursor=end,
        facts=_facts(opened, sha256),
        last=True,
        unchanged=True,
    )


def read_sample_file(
    path: Path, file_format: Format, *, notices: NoticeLog, find_end: FindEnd = lambda _: None
) -> Iterator[Batch]:
    """Yield the batches of a whole file at a path that a user entered. Links are followed.

    Raises:
        SourceBroken: there is no such file, or it can't be read in this format.
    """
    real = real_path(path)
    try:
        opened = open_file(RootedPath(real.parent, real.name), path.name)
        yield from read_open_file(opened, file_format, notices=notices, find_end=find_end)
    except FileNotFoundError:
        raise SourceBroken(f"There is no sample file {path}.") from None
    except OSError as error:
        raise SourceBroken(f"The sample file {path} can't be read: {describe_error(error)}") from error


def read_open_file(
    opened: OpenFile, file_format: Format, *, notices: NoticeLog, find_end: FindEnd = lambda _: None
) -> Iterator[Batch]:
    """Yield the batches of a whole open file, and close the file."""
    with opened.file:
        end = find_end(cast("BinaryIO", opened.file))
        yield from read_batches(opened, opened.sha256(), file_format, notices=notices, end=end)


def read_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the items. Another thread computes one item in advance.

    An exception of ``items`` is raised after all earlier items. After this generator is closed, no next item is computed.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


class FileHead:
    """The first ``end`` bytes of a file, for a format that reads in order."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self._left = end

    def read(self, size: int = -1) -> bytes:
        """Read as from a binary file; return no bytes after ``end``."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


class _HashingFile:
    """A file that hashes its bytes while they are read in order.

    After a seek, `hexdigest` reads and hashes the whole file instead.
    """

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._digest: Any = hashlib.sha256()
        self._in_order = True

    def read(self, size: int = -1) -> bytes:
        data = b""
        while size < 0 or len(data) < size:  # an unbuffered read may return less than the size
            more = self._file.read(size - len(data) if size >= 0 else -1)
            if not more:
                break
            data = data + more if data else more
        if self._in_order:
            self._digest.update(data)
        return data

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._in_order = False
        return self._file.seek(offset, whence)

    def fileno(self) -> int:
        self._in_order = False
        return self._file.fileno()

    def hexdigest(self) -> str:
        while self._in_order and self.read(_BLOCK_BYTES):
            pass  # hashes the bytes after the records
        if not self._in_order:
            self._file.seek(0)
            return hashlib.file_digest(self._file, "sha256").hexdigest()
        return str(self._digest.hexdigest())


def _facts(opened: OpenFile, sha256: str) -> Mapping[str, str]:
    path = PurePosixPath(opened.name)
    modified = datetime.fromtimestamp(opened.identity.mtime_ns // 10**9, UTC)
    fraction = opened.identity.mtime_ns % 10**9 // 1000
    return {
        "file.name": path.name,
        "file.stem": path.stem,
        "file.path": opened.name,
        "file.size": str(opened.identity.size),
        "file.mtime": modified.replace(microsecond=fraction).isoformat(),
        "file.sha256": sha256,
        "file.owner": opened.owner,
    }


@lru_cache(maxsize=256)
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
