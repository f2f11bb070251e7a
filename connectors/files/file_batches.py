"""One file to batches: what is handed over, what is hashed and what is claimed to be read are the very same bytes."""

from __future__ import annotations

import hashlib
import io
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import polars as pl

from connectors.files.file_head import FileHead
from connectors.files.identity import Identity
from connectors.files.notices import NoticeLog
from connectors.files.resubmission import Piece, pieces_of
from connectors.formats import Format
from ingestd.sdk import Batch, Cursor, SourceBroken, SourceUnavailable

_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """An open regular file: its name below the folder, its identity and the user it belongs to when it was opened."""

    name: str
    file: io.FileIO
    identity: Identity
    owner: str

    def sha256(self) -> str:
        """The hash of the whole content; the file is back at its start."""
        digest = hashlib.file_digest(self.file, "sha256").hexdigest()
        self.file.seek(0)
        return digest

    def content(self, cursor: Cursor | None) -> tuple[str, bool]:
        """The hash of the content, and whether the reading that ``cursor`` ended was of the same.

        Raises:
            SourceUnavailable: the file was written to meanwhile.
        """
        sha256 = self.sha256()
        self.check_unchanged()
        return sha256, cursor is not None and "offset" not in cursor and cursor.get("sha256") == sha256

    def check_unchanged(self) -> None:
        """Raises `SourceUnavailable` where the file was written to since it was opened."""
        if not Identity.from_status(os.fstat(self.file.fileno())).same_content(self.identity):
            raise SourceUnavailable(f"{self.name} was written to while it was read; it is read again once it is still.")


def open_file(path: Path, name: str) -> OpenFile:
    """Open a file for reading; the caller closes ``file``.

    Raises:
        FileNotFoundError: it is gone.
        SourceBroken: it is no regular file, or may not be read.
        OSError: its file system does not respond, or the process can open no more files.
    """
    try:
        # A pipe that took the file's place must not make us wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise SourceBroken(f"{name} can't be opened: {error.strerror}. Allow ingestd's user to read it.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise SourceBroken(f"{name} is no longer a regular file.")
    file = os.fdopen(descriptor, "rb", buffering=0)
    return OpenFile(name=name, file=file, identity=Identity.from_status(status), owner=_user_name(status.st_uid))


def read_batches(
    opened: OpenFile, sha256: str, file_format: Format, *, notices: NoticeLog, end: int | None = None
) -> Iterator[Batch]:
    """The whole file; the last batch comes only if the file's content was the hashed one from end to end.

    ``end``: records are in the first so many bytes only; None: in all of it. ``notices`` logs what was guessed or left out.
    Cursors before the last carry an ``offset``: they say that the file was not read to its end.

    Raises:
        SourceUnavailable: the file changed meanwhile.
        SourceBroken: the file as a whole can't be read as its format.
    """
    facts = _facts(opened, sha256)
    whole = opened.identity.cursor(sha256)
    source = _Hashing(opened.file)
    part = source if end is None else FileHead(cast("BinaryIO", source), end)
    pieces = pieces_of(file_format.read(cast("BinaryIO", part), opened.name), opened.name)
    piece: Piece | None = None
    try:
        for following in pieces:
            if piece is not None:
                yield _batch(piece, {**whole, "offset": piece.chunk.end.offset}, facts)
            piece = following
    except SourceBroken:
        opened.check_unchanged()  # a file that is being replaced is no broken one
        if piece is not None:  # it was read before the mistake
            yield _batch(piece, {**whole, "offset": piece.chunk.end.offset}, facts)
        raise
    if piece is None:
        raise AssertionError("a format gives at least one stretch")
    opened.check_unchanged()
    if source.hexdigest() != sha256:
        raise SourceUnavailable(f"{opened.name} changed while it was read; it is read again once it is still.")
    notices.log(opened.name, piece.chunk.facts)
    yield _batch(piece, whole, facts, last=True)


def _batch(piece: Piece, cursor: Mapping[str, object], facts: Mapping[str, str], *, last: bool = False) -> Batch:
    chunk = piece.chunk
    return Batch(
        records=chunk.records,
        positions=chunk.positions,
        cursor=cursor,
        facts={**facts, **chunk.facts, **piece.facts},
        rejects=chunk.rejects,
        last=last,
        header=chunk.header,
        partial=piece.partial,
        resolves=piece.resolves,
    )


def unchanged(opened: OpenFile, sha256: str) -> Batch:
    """The file was touched, or dropped again, and its content is what it was."""
    return Batch(
        records=pl.DataFrame(),
        positions=pl.Series("position", [], dtype=pl.Int64),
        cursor=opened.identity.cursor(sha256),
        facts=_facts(opened, sha256),
        last=True,
        unchanged=True,
    )


class _Hashing:
    """A file that hashes what passes through; one that was jumped about in is hashed once more at the end."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._digest: Any = hashlib.sha256()
        self._in_order = True

    def read(self, size: int = -1) -> bytes:
        data = b""
        while size < 0 or len(data) < size:  # an unbuffered read may give less than was asked for
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
        while self._in_order and self.read(_CHUNK_BYTES):
            pass  # what is left behind the records
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
