"""The file has the structure of its kind up to its end."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from connectors.directory.readiness.rule import FileView, Invalid, NotReady, ReadinessRule
from connectors.formats.compression import packed_suffix, unpack_completely
from ingestd.sdk import SourceBroken

_CHUNK_BYTES = 2**20
_ZIPPED = (".zip", ".xlsx", ".xlsm", ".xlsb", ".ods")
_MAGIC = {".parquet": b"PAR1", ".arrow": b"ARROW1", ".feather": b"ARROW1"}
_DOCUMENTS = (".json", ".xml", ".yaml", ".yml", ".toml", ".ini")


class Complete(ReadinessRule):
    """The file does not end in the middle, as its kind can tell.

    Workbooks and zip files have their directory, Parquet and Arrow their footer; gz, bz2, xz and zst unpack to their end;
    JSON, XML, YAML, TOML and INI parse. CSV, NDJSON and fixed width have no end that could be missing.
    """

    type: Literal["complete"] = "complete"
    give_up_seconds: float = Field(
        default=300,
        ge=0,
        description="So long a file that is not complete is waited for; then it is read, and parked with what is wrong.",
    )

    def evaluate(self, look: FileView) -> NotReady | Invalid | None:
        """Looked into once for each content."""
        if reason := look.cached("complete", lambda: find_missing_end(look.path, look.name, lambda: _parse(look))):
            return NotReady(sentence=f"it is not complete: {reason}", at_most=self.give_up_seconds)
        return None


def find_missing_end(path: Path, name: str, parse: Callable[[], None]) -> str:
    """What tells that a file ends in the middle; empty where nothing does.

    Raises:
        OSError: the file can't be read.
    """
    lower = name.lower()
    if lower.endswith(_ZIPPED):
        return _zipped(path)
    if packed_suffix(lower):
        return _through(lambda: unpack_completely(path, name))
    for suffix, magic in _MAGIC.items():
        if lower.endswith(suffix):
            return _footed(path, magic)
    return _through(parse) if lower.endswith(_DOCUMENTS) else ""


def _parse(look: FileView) -> None:
    with look.path.open("rb") as file:
        for _ in look.file_format.read(file, look.name):
            pass


def _through(walk: Callable[[], object]) -> str:
    try:
        walk()
    except SourceBroken as error:
        return str(error)
    return ""


def _zipped(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            end = max((info.header_offset + info.compress_size for info in archive.infolist()), default=0)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return "its directory, which a zip file and a workbook have at their end, is not there"
    return "it is shorter than its directory says" if end > path.stat().st_size else ""


def _footed(path: Path, magic: bytes) -> str:
    with path.open("rb") as file:
        head = file.read(len(magic))
        file.seek(-min(len(magic), path.stat().st_size), 2)
        tail = file.read()
    if head != magic:
        return f"it does not begin with {magic.decode()}"
    return "" if tail == magic and path.stat().st_size > len(magic) else f"it does not end with {magic.decode()}"
