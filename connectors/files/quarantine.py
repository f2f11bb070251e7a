"""The quarantine file: the rejected rows of a file. A person can correct these rows and drop the quarantine file.

The file is read back before it gets its name. If its rows are not recognised, because the encoding or the dialect can't be
detected, the rows are written again in UTF-8 with a byte order mark.
"""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import BinaryIO, cast

import msgspec

from connectors.beneath import Folder, NotRegularFile, RootedPath
from connectors.files.durable_write import Access, NewFile, numbered_names, shorten_name
from connectors.files.rejected_rows import QuarantineSource, RejectedRows, collect_columns
from connectors.files.resubmission import (
    ORIGIN,
    PREAMBLE_FACTS,
    RESERVED,
    fingerprint,
    has_preamble,
    origin_name,
    parse_origin,
    resubmitted_format,
)
from connectors.formats import Format, RecordChunk
from connectors.formats.compression import Packed, inner_name
from connectors.formats.csv import Csv
from connectors.formats.csv.dialect import COMMA, Dialect, RowWriter, delimiter_by_name
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.writer import encode_line
from ingestd.sdk import Acknowledgement, SourceBroken

_WITHOUT_ABSENT_FIELDS = frozenset({"excel", "fixed_width"})
"""Formats in which no field is absent. In other formats, absent and empty fields differ; CSV can't express this difference."""
_BYTE_ORDER_MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `write_quarantine`. ``path``: the file with ``rows`` rows; None: there was no row to write.

    ``sentence``: a remark about the file, or empty. ``missing``: the number of rejects that have no row in the present
    content of the source file.
    """

    path: RootedPath | None
    rows: int
    missing: int
    sentence: str = ""

    @property
    def remark(self) -> str:
        """What a receipt says about the rows in addition to their number; may be empty."""
        if not self.missing:
            return self.sentence
        missing = f"{self.missing} belong to an earlier content of the file; `ingestd rejected list` shows them."
        return f"{self.sentence} {missing}".strip()


def write_quarantine(
    source: QuarantineSource,
    acknowledgement: Acknowledgement,
    folder: RootedPath,
    check: Callable[[RootedPath], None] = lambda _: None,
) -> QuarantineFile:
    """Write the rejected rows of a file into ``folder``, unless ``folder`` already has a file with equal content.

    The new file has the permissions of the source file, or fewer. ``check`` raises an error if its path must not be written.

    Raises:
        OSError: the file can't be written.
    """
    first = source.first_chunk()
    layout = choose_layout(source, first)
    columns = collect_columns(first, acknowledgement)
    rows = RejectedRows(source, acknowledgement, columns)
    written = [*columns, PREAMBLE_FACTS] if has_preamble(first) else columns
    name = PurePosixPath(source.name)
    origin = shorten_name(name.with_name(origin_name(name.name) or name.name))
    target = folder / origin.with_name(f"{origin.name}.rejected{layout.suffix}").as_posix()
    check(target)
    status = os.fstat(source.file.fileno())
    key = f"{os.uname().nodename} {status.st_dev} {status.st_ino} {source.sha256} {acknowledgement.run} {target}"
    with target.parent.make_folder() as kept, NewFile(kept, key, Access.from_status(status)) as file:
        file.write(layout.encode(written, rows))
        sentence = layout.sentence
        if rows.count and not _reads_back(file, target.base, source.configured, rows.count):
            file.clear()
            file.write(layout.in_utf8().encode(written, rows))
            sentence = f"{sentence} It is in UTF-8.".strip()
        path = _publish(file, target) if rows.count else None
    return QuarantineFile(path=path, rows=rows.count, missing=rows.missing, sentence=sentence if path else "")


def _publish(file: NewFile, target: RootedPath) -> RootedPath:
    """Give the file the name ``target`` or a free variant, and return its path.

    If an attempt before a crash left an equal file, return the path of that file.
    """
    file.sync()
    content = _digest(os.dup(file.descriptor))
    for candidate in numbered_names(target):
        try:
            file.publish(candidate.base)
        except FileExistsError:
            if _digest_of(file.folder, candidate.base) == content:
                return candidate
            continue
        file.folder.sync()
        return candidate
    raise AssertionError("there is always a next number")


def _digest(descriptor: int) -> str:
    """Return the hash of an open file's whole content, and close the file."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(folder: Folder, base: str) -> str | None:
    """Return the hash of a file; None if there is no file of this name."""
    try:
        return _digest(folder.open_file(base))
    except (FileNotFoundError, NotRegularFile):
        return None


def _reads_back(written: NewFile, name: str, configured: str | Format | None, count: int) -> bool:
    """Read the file as if a person dropped it unchanged. Return True if every row is recognised as unchanged."""
    recognised = 0
    try:
        with os.fdopen(os.dup(written.descriptor), "rb") as file:
            file.seek(0)
            for chunk in resubmitted_format(name, configured).read(cast("BinaryIO", file), name):
                if chunk.rejects:
                    return False
                for record in chunk.records.iter_rows(named=True):
                    origin = parse_origin(record.get(ORIGIN))
                    recognised += origin is not None and origin.fingerprint == fingerprint(record)
    except SourceBroken:
        return False
    return recognised == count


class QuarantineLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a quarantine file.

    ``codec`` and ``mark``: the encoding and its byte order mark. ``dialect``: the dialect of a CSV file; None: the file is
    NDJSON. ``units``: the units row of the file, by column. ``sentence``: a remark about the choice of the
    layout, or empty.
    """

    suffix: str
    codec: str = "utf-8"
    mark: bytes = b""
    dialect: Dialect | None = None
    units: Mapping[str, str] = msgspec.field(default_factory=dict)
    sentence: str = ""

    def in_utf8(self) -> QuarantineLayout:
        """Return the same layout in UTF-8 with a byte order mark."""
        return QuarantineLayout(suffix=self.suffix, mark=codecs.BOM_UTF8, dialect=self.dialect, units=self.units)

    def encode(self, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> Iterator[bytes]:
        """Yield the bytes of the whole file. A character that the encoding lacks is written as an escape."""
        yield self.mark
        for line in self._lines(columns, rows):
            yield line.encode(self.codec, "backslashreplace")

    def _lines(self, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
        if self.dialect is None:
            yield from map(encode_line, rows)
            return
        names = [*columns, *RESERVED]
        writer = RowWriter(dialect=self.dialect)
        yield writer.row(names)
        if self.units:
            yield writer.row([self.units.get(name, "") for name in names])
        for row in rows:
            yield writer.row([row.get(name) or "" for name in names])


def choose_layout(source: QuarantineSource, first: RecordChunk) -> QuarantineLayout:
    """Return the layout for the rejected rows of a file. ``first``: the first chunk of this file.

    Rows of a CSV or NDJSON file keep the layout of this file. Rows of another format are written as NDJSON if a field can
    be absent in that format, else as CSV in UTF-8.
    """
    file_format, name = source.file_format, source.name
    while isinstance(file_format, Packed):
        name = first.facts.get("file.member") or inner_name(name)
        file_format = file_format.inner_format(name)
    suffix = PurePosixPath(name).suffix
    codec = codecs.lookup(first.facts.get("file.encoding", "utf-8").replace("shift-jis", "cp932")).name
    utf8_mark = codecs.BOM_UTF8 if codec == "utf-8" and _has_utf8_mark(source) else b""
    mark = _BYTE_ORDER_MARKS.get(codec, utf8_mark)
    if isinstance(file_format, Csv):
        delimiter = delimiter_by_name(first.facts.get("file.delimiter", ","))
        dialect = Dialect(delimiter=delimiter, quote=file_format.quote, comment=file_format.comment)
        units = {key.removeprefix("units."): unit for key, unit in first.facts.items() if key.startswith("units.")}
        return QuarantineLayout(suffix=suffix or ".csv", codec=codec, mark=mark, dialect=dialect, units=units)
    if isinstance(file_format, Ndjson):
        return QuarantineLayout(suffix=suffix or ".ndjson", codec=codec, mark=mark)
    if str(type(file_format).model_fields["type"].default) not in _WITHOUT_ABSENT_FIELDS:
        sentence = f"Rows of {suffix or 'such'} files are written as NDJSON."
        return QuarantineLayout(suffix=".ndjson", sentence=sentence)
    sentence = f"Rows of {suffix or 'such'} files are written as CSV in UTF-8."
    return QuarantineLayout(suffix=".csv", mark=codecs.BOM_UTF8, dialect=COMMA, sentence=sentence)


def _has_utf8_mark(source: QuarantineSource) -> bool:
    source.file.seek(0)
    return source.file.read(3) == codecs.BOM_UTF8
