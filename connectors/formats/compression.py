"""Packed files: gz, bz2, xz, zstd, and members of zip files. They are unpacked while they are read, up to a size limit."""

from __future__ import annotations

import bz2
import dataclasses
import errno
import fnmatch
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import PurePosixPath
from typing import Any, BinaryIO, ClassVar, Protocol, cast

import polars as pl
from msgspec.structs import replace

from connectors.formats.names import expand_glob, holds_no_data, is_no_data_folder
from connectors.formats.zstandard import zstd
from ingestd.sdk import NOTICE, SourceBroken, first_names
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.parser_process import Parsers
from ingestd.sdk.formats.record_chunk import RecordChunk, check_count
from ingestd.workbooks.zip_end import check_single_zip

UNPACKED_BYTES = 32 * 2**30
"""The limit for the unpacked size of one file. A larger file is treated as a decompression bomb."""

_PACKED_BLOCK_BYTES = 2**16

_OPENERS: Mapping[str, Callable[[BinaryIO], BufferedIOBase]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    ".bz2": lambda file: io.BufferedReader(_StreamReader(file, bz2.BZ2Decompressor)),
    ".xz": lambda file: io.BufferedReader(_StreamReader(file, lzma.LZMADecompressor)),
    ".zst": zstd.ZstdFile,
}
UNPACKING_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zstd.ZstdError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,
    struct.error,
)
"""The exceptions that unpacking raises if the file or its disk is damaged."""


def is_disk_error(error: Exception) -> bool:
    """Return True if the disk failed. EINVAL is no disk error: impossible offsets in a damaged zip file cause it."""
    return isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}


_ENCRYPTED = 0x1
_NAMED = 3

PACKED_SUFFIXES = (*_OPENERS, ".zip")
_ZIP_SUFFIXES = (".zip", ".reqifz")


def inner_name(name: str) -> str:
    """Return a file's name without the suffix of its compression."""
    return name[: -len(packed_suffix(name))] if packed_suffix(name) else name


def packed_suffix(name: str) -> str:
    """Return the suffix of a file's compression; empty if the file is not packed."""
    return next((suffix for suffix in (*_OPENERS, *_ZIP_SUFFIXES) if name.lower().endswith(suffix)), "")


def is_zip(name: str) -> bool:
    """Return whether a file has the name of a zip file, which may have several members."""
    return packed_suffix(name) in _ZIP_SUFFIXES


def open_unpacked(file: BinaryIO, name: str) -> BinaryIO:
    """Open the content of a gz, bz2, xz or zstd file. Reading raises `UNPACKING_ERRORS`, or `SourceBroken` above the limit."""
    return cast("BinaryIO", _BoundedReader(_OPENERS[packed_suffix(name)](file), name, UNPACKED_BYTES))


def unpack_completely(file: BinaryIO, name: str) -> None:
    """Unpack an open gz, bz2, xz or zstd file and discard the content.

    Raises:
        SourceBroken: the file is damaged or truncated, or holds more than `UNPACKED_BYTES`.
        OSError: the file can't be read.
    """
    try:
        with _OPENERS[packed_suffix(name)](file) as unpacked:
            bounded = _BoundedReader(unpacked, name, UNPACKED_BYTES)
            while bounded.read(2**20):
                pass
    except UNPACKING_ERRORS as error:
        if is_disk_error(error):
            raise
        raise SourceBroken(f"{name} can't be unpacked to its end: {str(error) or type(error).__name__}") from error


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _StreamReader(io.RawIOBase):
    """The content of a bz2 or xz file with one or more streams.

    Data after a stream must be another stream, or zero bytes, which are padding. `bz2.BZ2File` and `lzma.LZMAFile` ignore
    other data, so a damaged stream and all streams after it would be missing without an error.
    """

    def __init__(self, file: BinaryIO, create: Callable[[], _Decompressor]) -> None:
        self._file = file
        self._create = create
        self._decompressor = create()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        with memoryview(buffer) as view:
            data = self._read(view.nbytes)
            view[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data = b""
        while not data:
            packed = b""
            if self._decompressor.eof:
                packed = self._next_stream()
                if not packed:
                    break
                self._decompressor = self._create()
            elif self._decompressor.needs_input:
                packed = self._file.read(_PACKED_BLOCK_BYTES)
                if not packed:
                    raise EOFError("the file ends within its compressed data")
            data = self._decompressor.decompress(packed, size)
        return data

    def _next_stream(self) -> bytes:
        """Return the first bytes after the current stream and its padding; no bytes at the end of the file."""
        packed = self._decompressor.unused_data.lstrip(b"\0")
        while not packed and (more := self._file.read(_PACKED_BLOCK_BYTES)):
            packed = more.lstrip(b"\0")
        return packed


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class Packed(Format):
    """A packed file of another format. It is chosen by the file's name and can't be configured."""

    suffixes: ClassVar[tuple[str, ...]] = PACKED_SUFFIXES

    inner_format: Callable[[str], Format]
    """Returns the format of a file by its name."""
    member: str = "*"
    unpacked_bytes: int = UNPACKED_BYTES

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the records of the content.

        Raises:
            SourceBroken: the content is damaged, encrypted, too large, or not of its format.
        """
        try:
            if is_zip(name):
                yield from self._read_members(file, name)
                return
            with _OPENERS[packed_suffix(name)](file) as unpacked:
                yield from self._read(unpacked, name, inner_name(name))
        except UNPACKING_ERRORS as error:
            if is_disk_error(error):
                raise
            raise SourceBroken(
                f"{name} can't be unpacked: {str(error) or type(error).__name__}. Pack it again."
            ) from error

    def _read_members(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        with zipfile.ZipFile(file) as archive:
            check_single_zip(file, archive)
            members = [info for info in archive.infolist() if not info.is_dir() and self._is_wanted(info.filename)]
            if not members:
                raise SourceBroken(f"{name} holds no file that matches {self.member}.")
            others = self._without_format(members)
            members = [info for info in members if info.filename not in others]
            notice = _describe_others([*others])
            for info in sorted(members, key=lambda info: info.filename):
                if info.flag_bits & _ENCRYPTED:
                    raise SourceBroken(f"{name}: {info.filename} is encrypted. Pack it without a password.")
                if missing := self._missing_format(info.filename):
                    raise SourceBroken(
                        f"{name}: {missing} If {info.filename} holds no data, set member to a glob of the files that do, such as"
                        " '*.csv'."
                    )
                with archive.open(info) as unpacked:
                    for chunk in self._read(unpacked, name, info.filename):
                        yield _with_member(chunk, info.filename, notice, alone=len(members) == 1)

    def _without_format(self, members: Sequence[zipfile.ZipInfo]) -> Collection[str]:
        """Return the names of members that no format reads, such as a README.

        The result is empty if the option ``member`` is set, or if no format reads any member.
        """
        if self.member != "*":
            return ()
        others = {info.filename: None for info in members if self._missing_format(info.filename)}  # keeps their order
        return others.keys() if len(others) < len(members) else ()

    def _missing_format(self, member: str) -> str:
        """Return why no format reads a member, as a sentence; empty if a format reads the member."""
        try:
            self.inner_format(member)
        except SourceBroken as error:
            return str(error)
        return ""

    def _is_wanted(self, member: str) -> bool:
        path = PurePosixPath(member)
        if holds_no_data(path.name) or any(map(is_no_data_folder, path.parts[:-1])):
            return False
        return any(fnmatch.fnmatch(member if "/" in glob else path.name, glob) for glob in expand_glob(self.member))

    def _read(self, unpacked: _Readable, name: str, inner: str) -> Iterator[RecordChunk]:
        if is_zip(inner):
            raise SourceBroken(
                f"{name}: {inner} is a zip file within a zip file, which is not supported. Unpack it first, or set member to"
                " a glob of the other files."
            )
        bounded = cast("BinaryIO", _BoundedReader(unpacked, name, self.unpacked_bytes))
        yield from check_count(self.inner_format(inner).read(bounded, inner), inner)

    def with_parsers(self, parsers: Parsers) -> Packed:
        """Return a copy of this format in which ``parsers`` parse the content."""
        return self.model_copy(update={"inner_format": lambda inner: self.inner_format(inner).with_parsers(parsers)})


@dataclass(slots=True)
class _BoundedReader:
    """The unpacked content of a file, up to ``most`` bytes."""

    file: _Readable
    name: str
    most: int
    count: int = 0

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.count += len(data)
        if self.count > self.most:
            raise SourceBroken(
                f"{self.name} holds more than {self.most} bytes once unpacked. Drop it unpacked, or in parts."
            )
        return data


def _describe_others(names: Sequence[str]) -> str:
    """Return a sentence about the members that are not read; empty if there are none."""
    if not names:
        return ""
    return f"No format reads its members {first_names(names, _NAMED)}, so only the other members were read."


def _with_member(chunk: RecordChunk, member: str, notice: str, *, alone: bool) -> RecordChunk:
    """Return the chunk with its zip member as a fact. If the member is not ``alone``, each position names it."""
    facts = {**chunk.facts, "file.member": member}
    if notice:
        facts[NOTICE] = " ".join(filter(None, [chunk.facts.get(NOTICE), notice]))
    if alone:
        return replace(chunk, facts=facts)
    positions = chunk.positions.cast(pl.String)
    named = pl.Series("position", [f"{member}:{position}" for position in positions], dtype=pl.String)
    rejects = tuple(dataclasses.replace(reject, position=f"{member}:{reject.position}") for reject in chunk.rejects)
    return replace(chunk, positions=named, rejects=rejects, facts=facts)
