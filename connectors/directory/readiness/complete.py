"""The rule `complete`: the file has the structure of its format up to the end."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from typing import BinaryIO, Literal

from pydantic import Field

from connectors.directory.readiness.rule import FileView, InvalidFile, NotReady, ReadinessRule
from connectors.formats.compression import packed_suffix, unpack_completely
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import check_count

_ZIPPED = (".zip", ".xlsx", ".xlsm", ".xlsb", ".ods", ".reqifz")
_MAGIC = {".parquet": b"PAR1", ".pq": b"PAR1", ".arrow": b"ARROW1", ".feather": b"ARROW1", ".ipc": b"ARROW1"}
_STREAM_BEGIN, _STREAM_END = b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\0\0\0\0"
"""The first and last bytes of an Arrow stream."""
_DOCUMENTS = (".json", ".xml", ".yaml", ".yml", ".toml", ".ini")


class Complete(ReadinessRule):
    """The file is not truncated, if its format permits a check.

    Workbooks and zip files must end with their directory, Parquet and Arrow with their footer. gz, bz2, xz and zst must unpack
    completely. JSON, XML, YAML, TOML and INI must parse. CSV, NDJSON and fixed width have no recognisable end.
    """

    type: Literal["complete"] = "complete"
    give_up_seconds: float = Field(
        default=300,
        ge=0,
        description="How long to wait for the end of an incomplete file. After that it is read, and rejected with the reason.",
    )

    def evaluate(self, view: FileView) -> NotReady | InvalidFile | None:
        """Wait until the file is complete. A file is examined again only after its content has changed."""
        if reason := view.cached("complete", lambda: _missing_end(view)):
            return NotReady(sentence=f"it is not complete: {reason}", at_most=self.give_up_seconds)
        return None


def find_missing_end(file: BinaryIO, name: str, parse: Callable[[], None]) -> str:
    """Return what is missing or wrong at the end of an open file; empty if nothing shows that the file is truncated.

    Raises:
        OSError: the file can't be read.
    """
    lower = name.lower()
    if lower.endswith(_ZIPPED):
        return _check_zip(file)
    if packed_suffix(lower):
        return _error_of(lambda: unpack_completely(file, name))
    for suffix, magic in _MAGIC.items():
        if lower.endswith(suffix):
            return _check_footer(file, magic)
    return _error_of(parse) if lower.endswith(_DOCUMENTS) else ""


def _missing_end(view: FileView) -> str:
    with view.open_file() as file:
        return find_missing_end(file, view.name, lambda: _parse(view, file))


def _parse(view: FileView, file: BinaryIO) -> None:
    for _ in check_count(view.format.read(file, view.name), view.name):
        pass


def _error_of(read: Callable[[], object]) -> str:
    try:
        read()
    except SourceBroken as error:
        return str(error)
    return ""


def _check_zip(file: BinaryIO) -> str:
    try:
        with zipfile.ZipFile(file) as archive:
            end = max((info.header_offset + info.compress_size for info in archive.infolist()), default=0)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return "its directory, with which a zip file and a workbook end, is missing"
    return "it is shorter than its directory says" if end > _size(file) else ""


def _check_footer(file: BinaryIO, magic: bytes) -> str:
    head, size = file.read(len(magic)), _size(file)
    file.seek(-min(len(_STREAM_END), size), os.SEEK_END)
    tail = file.read()
    if magic == b"ARROW1" and head.startswith(_STREAM_BEGIN):
        return "" if tail == _STREAM_END else "it does not end with the mark of a stream's end"
    if head != magic:
        return f"it does not begin with {magic.decode()}"
    return "" if tail.endswith(magic) and size > len(magic) else f"it does not end with {magic.decode()}"


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
