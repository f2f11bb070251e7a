"""Uploads and downloads in chunks, which are counted and hashed as they pass."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from ingestd.client.checks import ResponseMismatch

Source: TypeAlias = bytes | Path | Iterable[bytes]
"""What can be uploaded: bytes, a file, or an iterable of chunks."""

AsyncSource: TypeAlias = Source | AsyncIterable[bytes]

_CHUNK_BYTES = 256 * 1024
_STRONG_SHA256 = re.compile(r'"([0-9a-f]{64})"')


class Outgoing:
    """A source that is sent once; `sha256` is the digest of the chunks sent so far."""

    def __init__(self, source: AsyncSource) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.file_name = source.name if isinstance(source, Path) else None

    @property
    def sha256(self) -> str:
        """Lower-case hexadecimal."""
        return self._digest.hexdigest()

    @property
    def headers(self) -> Mapping[str, str]:
        """Content-Length if it is known: a source that changes while it is sent fails, and is not stored in part."""
        if isinstance(self._source, bytes):
            return {"Content-Length": str(len(self._source))}
        return {"Content-Length": str(self._source.stat().st_size)} if isinstance(self._source, Path) else {}

    def chunks(self) -> Iterator[bytes]:
        """Iterate for the blocking client."""
        if isinstance(self._source, AsyncIterable):
            raise TypeError("A blocking client can't wait for an asynchronous source.")
        for chunk in _chunks(self._source):
            self._digest.update(chunk)
            yield chunk

    async def async_chunks(self) -> AsyncIterator[bytes]:
        """Iterate for the asynchronous client; files are read in threads, so the event loop is not blocked."""
        if isinstance(self._source, AsyncIterable):
            async for chunk in self._source:
                self._digest.update(chunk)
                yield chunk
            return
        if not isinstance(self._source, Path):
            for chunk in _chunks(self._source):
                self._digest.update(chunk)
                yield chunk
            return
        with await asyncio.to_thread(self._source.open, "rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
                self._digest.update(chunk)
                yield chunk


def _chunks(source: Source) -> Iterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), _CHUNK_BYTES):
            yield source[start : start + _CHUNK_BYTES]
    elif isinstance(source, Path):
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    else:
        yield from source


class AtomicDownload(AbstractContextManager["AtomicDownload"]):
    """A file that is complete or absent: written to a temporary file in the same folder, and renamed by `commit`."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        self._digest = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> Self:
        self._file = self._temporary.open("xb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._digest.update(chunk)
        self._size += len(chunk)
        self._file.write(chunk)

    def commit(self, etag: str) -> int:
        """Rename the file to its target, and return its size in bytes.

        Raises:
            ResponseMismatch: the ETag is the SHA-256 of other bytes.
        """
        expected = _STRONG_SHA256.fullmatch(etag)
        if expected and expected[1] != self._digest.hexdigest():
            raise ResponseMismatch("Its bytes have another SHA-256 than its ETag says.")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._target)
        return self._size
