"""Bytes on their way out of and into files: in pieces, counted and hashed as they pass."""

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

from ingestd.client.decoding import Mismatch

Source: TypeAlias = bytes | Path | Iterable[bytes]
"""What can be uploaded: bytes, a file, or pieces as they come."""

AsyncSource: TypeAlias = Source | AsyncIterable[bytes]

_PIECE_BYTES = 256 * 1024
_STRONG_SHA256 = re.compile(r'"([0-9a-f]{64})"')


class Outgoing:
    """A source to be sent once; `sha256` is of what has passed so far."""

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
        """Content-Length, where it is known before: what is shorter or longer then fails instead of being half a file."""
        if isinstance(self._source, bytes):
            return {"Content-Length": str(len(self._source))}
        return {"Content-Length": str(self._source.stat().st_size)} if isinstance(self._source, Path) else {}

    def pieces(self) -> Iterator[bytes]:
        """For the blocking client."""
        if isinstance(self._source, AsyncIterable):
            raise TypeError("A blocking client can't wait for an asynchronous source.")
        for piece in _pieces(self._source):
            self._digest.update(piece)
            yield piece

    async def async_pieces(self) -> AsyncIterator[bytes]:
        """For the asynchronous client; files are read in threads, so that nothing else has to wait."""
        if isinstance(self._source, AsyncIterable):
            async for piece in self._source:
                self._digest.update(piece)
                yield piece
            return
        if not isinstance(self._source, Path):
            for piece in _pieces(self._source):
                self._digest.update(piece)
                yield piece
            return
        with await asyncio.to_thread(self._source.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                self._digest.update(piece)
                yield piece


def _pieces(source: Source) -> Iterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), _PIECE_BYTES):
            yield source[start : start + _PIECE_BYTES]
    elif isinstance(source, Path):
        with source.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
    else:
        yield from source


class Landing(AbstractContextManager["Landing"]):
    """A file that is there whole or not at all: written beside its place, and put there by `settle`."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        self._digest = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> Self:
        self._file = self._beside.open("xb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._beside.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        """Take in a piece."""
        self._digest.update(piece)
        self._size += len(piece)
        self._file.write(piece)

    def settle(self, etag: str) -> int:
        """Put the file into its place; answers its size in bytes.

        Raises:
            Mismatch: the tag is a SHA-256, and of other bytes.
        """
        promised = _STRONG_SHA256.fullmatch(etag)
        if promised and promised[1] != self._digest.hexdigest():
            raise Mismatch("Its bytes have another SHA-256 than its ETag says.")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._beside.replace(self._target)
        return self._size
