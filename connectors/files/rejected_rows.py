"""The rejected rows of a file, each with its reason and its origin, in the order of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import BinaryIO

import msgspec
import polars as pl

from connectors.files.resubmission import (
    FIELD,
    ORIGIN,
    PREAMBLE_FACTS,
    RAW_TEXT,
    REASON,
    RESERVED,
    ROW,
    RowOrigin,
    encode_preamble,
    fingerprint,
    parse_origin,
)
from connectors.formats import Format, RecordChunk
from ingestd.sdk import CHILD_OF, Acknowledgement, Position, Rejected, SourceBroken

_OF_CHILD = re.compile(rf"(?P<record>.+){re.escape(CHILD_OF)}(?P<path>.+\[\d+\])", re.DOTALL)


class QuarantineSource(msgspec.Struct, frozen=True, kw_only=True):
    """The open source file of rejected rows, its name below the drop folder, and its hash.

    ``configured``: the value of the option ``format``.
    """

    file: BinaryIO
    name: str
    sha256: str
    file_format: Format
    configured: str | Format | None

    def chunks(self) -> Iterator[RecordChunk]:
        """Read the file from its start."""
        self.file.seek(0)
        return self.file_format.read(self.file, self.name)

    def first_chunk(self) -> RecordChunk:
        """Return the first chunk of the file.

        Raises:
            SourceBroken: the file yields no chunk any more.
        """
        try:
            return next(self.chunks())
        except StopIteration:
            raise SourceBroken(f"{self.name} yields no rows any more.") from None


class RejectedRows:
    """The rejected rows in the order of the file. Can be iterated more than once.

    After an iteration, ``count`` is the number of rows, and ``missing`` the number of rejects without a row in the file.
    """

    def __init__(self, source: QuarantineSource, acknowledgement: Acknowledgement, columns: Sequence[str]) -> None:
        self._source = source
        self._acknowledgement = acknowledgement
        self._columns = columns
        self.count = 0
        self.missing = 0

    def __iter__(self) -> Iterator[dict[str, str | None]]:
        self.count = self.missing = 0
        finder = _RecordFinder(self._source.chunks()) if self._acknowledgement.refused else None
        for position, group in groupby(
            self._acknowledgement.rejects(), key=lambda reject: _record_position(reject.position)
        ):
            rejects = list(group)
            record = next((_separated(reject.record, self._columns) for reject in rejects if reject.record), None)
            if record is None and finder is not None and self._is_of_this_content(rejects):
                record = finder.find(position, is_child=bool(_child_path(rejects[0].position)))
            if record is None:
                self.missing += len(rejects)
                continue
            self.count += 1
            yield self._annotate(record, position, rejects)

    def _is_of_this_content(self, rejects: Sequence[Rejected]) -> bool:
        """Return True if the positions belong to the present content of the file, not to earlier content."""
        return all(reject.facts.get("file.sha256") == self._source.sha256 for reject in rejects)

    def _annotate(
        self, record: Mapping[str, str | None], position: Position, rejects: Sequence[Rejected]
    ) -> dict[str, str | None]:
        fields = {name: record.get(name) for name in self._columns if name in record}
        before = parse_origin(record.get(ORIGIN))
        origin = RowOrigin(
            references=tuple(reject.reference for reject in rejects),
            fingerprint=fingerprint(fields),
            sha256=before.sha256 if before else self._source.sha256,
            name=before.name if before else self._source.name,
        )
        several = len(rejects) > 1
        reason = " ".join(
            f"{name}: {reject.reason}" if name else reject.reason
            for reject in rejects
            for name in [(reject.key if several else "") or _child_path(reject.position)]
        )
        row = (record.get(ROW) or "") if before else str(position).removeprefix("row ")
        names = dict.fromkeys(reject.field or reject.key for reject in rejects if reject.field or reject.key)
        preamble = record.get(PREAMBLE_FACTS) or encode_preamble(rejects[0].facts)
        known = {PREAMBLE_FACTS: preamble} if preamble else {}
        return {
            **fields, **known, REASON: " ".join(reason.split()), ROW: row, FIELD: ", ".join(names), ORIGIN: str(origin)
        }  # fmt: skip


class _RecordFinder:
    """Finds records by position. Numeric positions must be requested in the order of the file."""

    def __init__(self, chunks: Iterator[RecordChunk]) -> None:
        self._chunks = chunks
        self._chunk: RecordChunk | None = None
        self._by_text: dict[str, tuple[Mapping[str, str | None], bool]] | None = None
        """By position as text: the record, and whether positions in its chunk are numbers."""

    def find(self, position: Position, *, is_child: bool) -> Mapping[str, str | None] | None:
        if isinstance(position, str):
            record, has_number = self._find_by_text(position)
            return None if has_number and not is_child else record  # the text position names a group of rows
        while self._chunk is None or not _reaches(self._chunk, position):
            self._chunk = next(self._chunks, None)
            if self._chunk is None:
                self._chunks = iter(())
                return None
        index = self._chunk.positions.search_sorted(position)
        if index < self._chunk.records.height and self._chunk.positions[index] == position:
            return self._chunk.records.row(index, named=True)
        return None

    def _find_by_text(self, position: str) -> tuple[Mapping[str, str | None] | None, bool]:
        """Return the record at a text position, and whether positions in its chunk are numbers.

        Children, the records of a file with several members, and resubmitted rows have text positions, which have no order.
        """
        if self._by_text is None:
            self._by_text = {}
            for chunk in self._chunks:
                has_number = chunk.positions.dtype == pl.Int64 and ORIGIN not in chunk.records.columns
                for place, record in zip(chunk.positions, chunk.records.iter_rows(named=True), strict=True):
                    is_row = ORIGIN in record or isinstance(place, int)
                    self._by_text[f"row {place}" if is_row else str(place)] = (record, has_number)
        return self._by_text.get(position.split(", which is ", 1)[0], (None, False))


def _record_position(position: Position) -> Position:
    """Return the position of the record: for a child, the position without the child's path."""
    found = _OF_CHILD.fullmatch(position) if isinstance(position, str) else None
    return found["record"] if found else position


def _child_path(position: Position) -> str:
    """Return the path of a child in its record; empty if the position belongs to a record."""
    found = _OF_CHILD.fullmatch(position) if isinstance(position, str) else None
    return found["path"] if found else ""


def _reaches(chunk: RecordChunk, position: int) -> bool:
    return bool(chunk.positions.len()) and int(chunk.positions[-1]) >= position


def _separated(record: Mapping[str, str | None], columns: Sequence[str]) -> Mapping[str, str | None]:
    """Return the record; if its fields could not be separated, return its text in the column `RAW_TEXT`."""
    return {RAW_TEXT: record["text"]} if _is_raw(record, columns) else record


def _is_raw(record: Mapping[str, str | None], columns: Iterable[str]) -> bool:
    return record.keys() == {"text"} and "text" not in columns


def collect_columns(first: RecordChunk, acknowledgement: Acknowledgement) -> list[str]:
    """Return the columns of the header and of the rejected rows, without the reserved columns."""
    columns = dict.fromkeys(first.records.columns)
    for reject in acknowledgement.rejects():
        columns.update(
            dict.fromkeys([RAW_TEXT] if _is_raw(reject.record, first.records.columns) else list(reject.record))
        )
    return [name for name in columns if name not in {*RESERVED, PREAMBLE_FACTS}]
