"""The rows of a file that were rejected, written as a file that a person can mend and drop back.

In the format, the header, the dialect and the encoding of the file where that is CSV or NDJSON; the rows of what tells an
absent field from an empty one become NDJSON, those of everything else CSV. What was written is read back before it gets its
name: should a few rows not tell their encoding or dialect any more, they are written in UTF-8 with its mark.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from connectors.files.durable_write import existing, make_folder, reserve, shorten_name, sync_folder, write_hidden
from connectors.files.resubmission import (
    FIELD,
    ORIGIN,
    REASON,
    RESERVED,
    ROW,
    UNPARTED,
    RowOrigin,
    fingerprint,
    origin_name,
    parse_origin,
    resubmitted_format,
)
from connectors.formats import Format, RecordChunk
from connectors.formats.compression import Packed, inner_name
from connectors.formats.csv import Csv
from connectors.formats.csv.dialect import COMMA, Dialect
from connectors.formats.csv.writer import RowWriter, delimiter_by_name
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.writer import encode_line
from ingestd.sdk import Position, Rejected, Settlement, SourceBroken

_TELLS_ABSENT = frozenset({"json", "yaml", "toml", "ini", "xml", "parquet", "arrow"})
_MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """``path`` holds ``rows`` rows; ``sentence`` says what a person should know beyond that (empty: nothing).

    ``elsewhere``: how many entries are parked of which this file does not hold the row any more.
    """

    path: Path | None
    rows: int
    elsewhere: int
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file whose rows were rejected: open at its start, known by its name below the drop folder and its hash."""

    file: BinaryIO
    name: str
    sha256: str
    file_format: Format
    configured: str | Format | None

    def chunks(self) -> Iterator[RecordChunk]:
        """The file, read from its start."""
        self.file.seek(0)
        return self.file_format.read(self.file, self.name)


def quarantine(source: Source, settlement: Settlement, folder: Path) -> Quarantined:
    """Write the rejected rows into ``folder``; the same again is not written twice.

    Raises:
        OSError: it can't be written.
    """
    top = _top(source)
    shape = _shape(source, top)
    columns = _columns(top, settlement)
    rows = _RejectedRows(source, settlement, columns)
    name = PurePosixPath(source.name)
    origin = shorten_name(name.with_name(origin_name(name.name) or name.name))
    target = folder / origin.with_name(f"{origin.name}.rejected{shape.suffix}")
    make_folder(target.parent)
    hidden = write_hidden(target, shape.written(columns, rows))
    sentence = shape.sentence
    if rows.count and not _reads_back(hidden, target.name, source.configured, rows.count):
        hidden.unlink()
        shape = shape.in_utf8()
        hidden = write_hidden(target, shape.written(columns, rows))
        sentence = f"{sentence} It is in UTF-8.".strip()
    if not rows.count:
        hidden.unlink()
        return Quarantined(path=None, rows=0, elsewhere=rows.elsewhere)
    return Quarantined(path=_named(hidden, target), rows=rows.count, elsewhere=rows.elsewhere, sentence=sentence)


def _named(hidden: Path, target: Path) -> Path:
    """Give what was written its name; what an attempt before a crash has written is not written again."""
    ours = _digest(hidden)
    for candidate in existing(target):
        if candidate.is_file() and candidate.stat().st_size and _digest(candidate) == ours:
            hidden.unlink()
            return candidate
    taken = reserve(target)
    hidden.rename(taken)
    sync_folder(taken.parent)
    return taken


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --------------------------------------------------------------------------------------------------------- the rows


class _RejectedRows:
    """The rejected rows in the order of the file; may be gone through more than once."""

    def __init__(self, source: Source, settlement: Settlement, columns: Sequence[str]) -> None:
        self._source = source
        self._settlement = settlement
        self._columns = columns
        self.count = 0
        self.elsewhere = 0

    def __iter__(self) -> Iterator[dict[str, str | None]]:
        self.count = self.elsewhere = 0
        rest = _Finder(self._source.chunks()) if self._settlement.refused else None
        for position, group in groupby(self._settlement.rejects(), key=lambda one: one.position):
            parked = list(group)
            record = next((_named_fields(one.record, self._columns) for one in parked if one.record), None)
            if record is None and rest is not None and self._is_of_this(parked):
                record = rest.find(position)
            if record is None:
                self.elsewhere += len(parked)
                continue
            self.count += 1
            yield self._told(record, position, parked)

    def _is_of_this(self, parked: Sequence[Rejected]) -> bool:
        """Whether a position counts in the file as it is now: an entry may have its value from an earlier content."""
        return all(one.facts.get("file.sha256") == self._source.sha256 for one in parked)

    def _told(
        self, record: Mapping[str, str | None], position: Position, parked: Sequence[Rejected]
    ) -> dict[str, str | None]:
        fields = {name: record.get(name) for name in self._columns if name in record}
        before = parse_origin(record.get(ORIGIN))
        origin = RowOrigin(
            references=tuple(one.reference for one in parked),
            fingerprint=fingerprint(fields),
            sha256=before.sha256 if before else self._source.sha256,
            name=before.name if before else self._source.name,
        )
        several = len(parked) > 1
        reason = " ".join(f"{one.key}: {one.reason}" if several and one.key else one.reason for one in parked)
        row = (record.get(ROW) or "") if before else str(position)
        named = ", ".join(dict.fromkeys(one.field or one.key for one in parked if one.field or one.key))
        return {**fields, REASON: " ".join(reason.split()), ROW: row, FIELD: named, ORIGIN: str(origin)}


class _Finder:
    """Finds rows by their position, asked for in the order of the file where positions are numbers."""

    def __init__(self, chunks: Iterator[RecordChunk]) -> None:
        self._chunks = chunks
        self._chunk: RecordChunk | None = None
        self._by_text: dict[str, Mapping[str, str | None]] | None = None

    def find(self, position: Position) -> Mapping[str, str | None] | None:
        if isinstance(position, str):
            return self._named(position)
        while self._chunk is None or not _reaches(self._chunk, position):
            self._chunk = next(self._chunks, None)
            if self._chunk is None:
                self._chunks = iter(())
                return None
        place = self._chunk.positions.search_sorted(position)
        if place < self._chunk.records.height and self._chunk.positions[place] == position:
            return self._chunk.records.row(place, named=True)
        return None

    def _named(self, position: str) -> Mapping[str, str | None] | None:
        """Of several files in one, and of rows that came back, positions are names, and come in no order."""
        if self._by_text is None:
            self._by_text = {}
            for chunk in self._chunks:
                for place, record in zip(chunk.positions, chunk.records.iter_rows(named=True), strict=True):
                    self._by_text[f"row {place}" if ORIGIN in record else str(place)] = record
        return self._by_text.get(position.split(", which is ", 1)[0])


def _reaches(chunk: RecordChunk, position: int) -> bool:
    return bool(chunk.positions.len()) and int(chunk.positions[-1]) >= position


def _named_fields(record: Mapping[str, str | None], columns: Sequence[str]) -> Mapping[str, str | None]:
    """A record whose fields could not be told apart has its text under the column for that."""
    return {UNPARTED: record["text"]} if _is_unparted(record, columns) else record


def _is_unparted(record: Mapping[str, str | None], columns: Iterable[str]) -> bool:
    return record.keys() == {"text"} and "text" not in columns


def _top(source: Source) -> RecordChunk:
    try:
        return next(source.chunks())
    except StopIteration:
        raise SourceBroken(f"{source.name} gives no rows any more.") from None


def _columns(top: RecordChunk, settlement: Settlement) -> list[str]:
    """The header's columns, and what rejected rows have beyond them, but for the reserved ones."""
    columns = dict.fromkeys(top.records.columns)
    for one in settlement.rejects():
        columns.update(dict.fromkeys([UNPARTED] if _is_unparted(one.record, top.records.columns) else one.record))
    return [name for name in columns if name not in RESERVED]


# --------------------------------------------------------------------------------------------------------- the shape


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileShape:
    """How the rows are written; ``units``: by column, where the file has a row of them."""

    suffix: str
    codec: str = "utf-8"
    mark: bytes = b""
    dialect: Dialect | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    sentence: str = ""

    def in_utf8(self) -> _FileShape:
        return _FileShape(suffix=self.suffix, mark=codecs.BOM_UTF8, dialect=self.dialect, units=self.units)

    def written(self, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> Iterator[bytes]:
        """The bytes of the whole file; a character that its encoding lacks is spelled out."""
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


def _shape(source: Source, top: RecordChunk) -> _FileShape:
    file_format, name = source.file_format, source.name
    while isinstance(file_format, Packed):
        name = top.facts.get("file.member") or inner_name(name)
        file_format = file_format.inside(name)
    suffix = PurePosixPath(name).suffix
    codec = codecs.lookup(top.facts.get("file.encoding", "utf-8").replace("shift-jis", "cp932")).name
    mark = _MARKS.get(codec, codecs.BOM_UTF8 if codec == "utf-8" and _has_mark(source) else b"")
    if isinstance(file_format, Csv):
        dialect = Dialect(
            delimiter=delimiter_by_name(top.facts.get("file.delimiter", ",")),
            quote=file_format.quote,
            comment=file_format.comment,
        )
        units = {key.removeprefix("units."): unit for key, unit in top.facts.items() if key.startswith("units.")}
        return _FileShape(suffix=suffix or ".csv", codec=codec, mark=mark, dialect=dialect, units=units)
    if isinstance(file_format, Ndjson):
        return _FileShape(suffix=suffix or ".ndjson", codec=codec, mark=mark)
    if str(type(file_format).model_fields["type"].default) in _TELLS_ABSENT:
        return _FileShape(suffix=".ndjson", sentence=f"Rows of {suffix or 'such'} files are written as NDJSON.")
    sentence = f"Rows of {suffix or 'such'} files are written as CSV in UTF-8."
    return _FileShape(suffix=".csv", mark=codecs.BOM_UTF8, dialect=COMMA, sentence=sentence)


def _has_mark(source: Source) -> bool:
    source.file.seek(0)
    return source.file.read(3) == codecs.BOM_UTF8


def _reads_back(path: Path, name: str, configured: str | Format | None, count: int) -> bool:
    """Whether each of the rows, read as if it were dropped back untouched, is known to be untouched."""
    known = 0
    try:
        with path.open("rb") as file:
            for chunk in resubmitted_format(name, configured).read(cast("BinaryIO", file), name):
                if chunk.rejects:
                    return False
                for record in chunk.records.iter_rows(named=True):
                    origin = parse_origin(record.get(ORIGIN))
                    known += origin is not None and origin.fingerprint == fingerprint(record)
    except SourceBroken:
        return False
    return known == count
