"""Opens an MF4 file with asammdf, without writing to files: scratch files and repairs stay in memory.

A parser process may not write files. By default, asammdf keeps sorted records in a temporary file. If the recorder did not
close a file, asammdf repairs it by writing to it.
"""

from __future__ import annotations

import io
import logging
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import typing_extensions
from asammdf import MDF
from asammdf.blocks import mdf_v4, v4_blocks
from asammdf.blocks.utils import get_text_v4

from connectors.formats.measurement.channels import decode_text
from connectors.formats.mf4.sorted_records import SortedRecords
from ingestd.sdk import SourceBroken

_HEAD_BYTES = 64
_FINISHED, _UNFINISHED = b"MDF     ", b"UnFinMF "
_LINKS_AT = 24
_DATA_OF_GROUP = 2
"""The number of the link from a data group to its data. Link 0 of each block used here leads to the next block."""


@contextmanager
def _scratch_in_memory(name: str, limit: int) -> Iterator[None]:
    """Have asammdf create its scratch file in memory. asammdf creates it and sorts records when it opens a file."""
    original = mdf_v4.NamedTemporaryFile
    scratch = SortedRecords(name, limit)
    mdf_v4.NamedTemporaryFile = lambda **_: scratch
    try:
        with scratch.noted():
            yield
    finally:
        mdf_v4.NamedTemporaryFile = original


class _PrivateMapping(mmap.mmap):
    """The bytes of a file. Writes to these bytes do not change the file, and no other process sees them."""

    def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]  # a file has lines, a buffer has numbers
        """Yield the lines, because asammdf recognises a file by this method."""
        return iter(self.readline, b"")


io.BufferedIOBase.register(_PrivateMapping)  # asammdf accepts only files of this class
# asammdf copies the content of an object that is no `Buffer`. Python 3.11 does not recognise a mapping as a `Buffer`.
typing_extensions.Buffer.register(_PrivateMapping)


class _RefuseWarnings(logging.Handler):
    """Makes a warning of the library an error.

    After a warning, the library leaves out channels or conversions, or reads other bytes.
    """

    def emit(self, record: logging.LogRecord) -> None:
        raise ValueError(record.getMessage().partition(": Traceback")[0])


_library_log = logging.getLogger("asammdf")
_library_log.setLevel(logging.WARNING)  # the library sets ERROR
_library_log.addHandler(_RefuseWarnings(logging.WARNING))


def _text(*arguments: Any, decode: bool = True, **named: Any) -> str | bytes:
    """Return a text of the file. The library would guess the encoding of a text that is not UTF-8."""
    data = get_text_v4(*arguments, decode=False, **named)
    return decode_text(data) if decode else data


class _KnownTypes(frozenset[int]):
    """The data types that the library reads. It would leave out a channel of another type without a warning."""

    def __contains__(self, kind: object) -> bool:
        if not super().__contains__(kind):
            raise ValueError(f"a channel has the data type {kind}, which is not known")
        return True


# This module is imported by parser processes only.
mdf_v4.get_text_v4 = v4_blocks.get_text_v4 = _text
mdf_v4.VALID_DATA_TYPES = _KnownTypes(mdf_v4.VALID_DATA_TYPES)


def open_mdf(file: BinaryIO, name: str, *, piece_bytes: int, sort_bytes: int) -> tuple[MDF, bool]:
    """Return the opened file, and whether its recorder closed it. Samples are read in pieces of ``piece_bytes``.

    If the file mixes records of several groups, at most ``sort_bytes`` of sorted records are in memory.

    Raises:
        SourceBroken: the file is no MF4 file, can't be repaired, or has too many mixed records in compressed blocks.
        MemoryError: the repair needs more memory than the process may use.
    """
    head = file.read(_HEAD_BYTES)
    if len(head) < _HEAD_BYTES or head[:8] not in (_FINISHED, _UNFINISHED):
        raise SourceBroken(f"{name} is no MF4 file: it does not begin with MDF.")
    version = head[8:16].decode("latin-1").strip(" \0")
    if not version.startswith("4."):
        raise SourceBroken(f"{name} is an MDF file of version {version}, which is not read. Convert it to version 4.")
    (flags,) = struct.unpack_from("<H", head, 60)
    is_closed = not flags and head[:8] == _FINISHED
    if not is_closed:
        _refuse_chained_lists(file, name)
    with _scratch_in_memory(name, sort_bytes):
        mdf = MDF(cast("Any", file if is_closed else _private_mapping(file)), process_bus_logging=False)
    mdf.configure(read_fragment_size=piece_bytes)
    return mdf, is_closed


def _private_mapping(file: BinaryIO) -> _PrivateMapping:
    try:
        return _PrivateMapping(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise MemoryError from error


def _refuse_chained_lists(file: BinaryIO, name: str) -> None:
    """Check that asammdf can repair the file. Its repair never ends if the data of a group are in several lists.

    Raises:
        SourceBroken: asammdf can't repair the file.
    """
    group = _link(file, _HEAD_BYTES, 0)
    seen: set[int] = set()
    while group and group not in seen:
        seen.add(group)
        data = _link(file, group, _DATA_OF_GROUP)
        if _tag(file, data) == b"##HL":
            data = _link(file, data, 0)
        if _tag(file, data) == b"##DL" and _link(file, data, 0):
            raise SourceBroken(
                f"{name} was not closed by its recorder, and its samples are in several lists, which can't be repaired here. Open"
                " it with the program of the recorder and save it."
            )
        group = _link(file, group, 0)


def _tag(file: BinaryIO, address: int) -> bytes:
    file.seek(address)
    return file.read(4)


def _link(file: BinaryIO, address: int, number: int) -> int:
    """Return a link of the block at an address; 0 after the end of the file."""
    file.seek(address + _LINKS_AT + 8 * number)
    return int.from_bytes(file.read(8), "little")
