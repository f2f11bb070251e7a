"""The layout of a quarantine file: format, dialect and encoding, if possible those of the source."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from connectors.files.rejected_rows import QuarantineSource
from connectors.files.resubmission import RESERVED
from connectors.formats import RecordChunk
from connectors.formats.compression import Packed, inner_name
from connectors.formats.csv import Csv
from connectors.formats.csv.dialect import COMMA, Dialect, RowWriter, delimiter_by_name
from connectors.formats.ndjson import Ndjson
from connectors.formats.ndjson.writer import encode_line

_WITHOUT_ABSENT_FIELDS = frozenset({"excel", "fixed_width"})
"""Formats in which no field is absent. In others, an absent field differs from an empty one, which CSV can't express."""
_BYTE_ORDER_MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


class QuarantineLayout(msgspec.Struct, frozen=True, kw_only=True):
    """How rejected rows are written.

    ``codec`` and ``mark``: the encoding and its byte order mark. ``dialect``: of CSV; None: NDJSON. ``units``: the units row of
    the file, by column. ``sentence``: what a person should know about the choice; empty: nothing.
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
    """Return the layout for the rejected rows of a file; ``first`` is its first chunk.

    Rows of a CSV or NDJSON file keep its layout. Rows of another format are written as NDJSON if a field can be absent in that
    format, else as CSV in UTF-8.
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
