"""The sections of a CSV file: parts of whole lines. If rows are inserted or removed, only the sections near these rows change.

A section with a known digest is skipped without parsing. The result is the same as with parsing, for three reasons:

1. A section has a digest (`Section.digest`) only if `BlockReader.read_by_columns` has read it. Then each line of the section is
   exactly one record that is not rejected, and the last line ends outside quotes.
2. A section is skipped only if a record begins at its start, and the columns have the order of the header. Between two records
   the csv module keeps no state, so equal bytes give equal records. The section ends with a record, so the next section
   also starts at a record.
3. The digest covers everything else that decides the result: columns, dialect, layout, facts of the file, limits and versions.

A section that starts inside a record, such as after an inserted quote, is never skipped. It is read with the text before it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from struct import Struct

import msgspec
import polars as pl

from connectors.formats.csv.block_reader import BlockReader
from connectors.formats.csv.dialect import Layout
from connectors.formats.csv.fast import count_lines
from connectors.formats.csv.header import Header
from connectors.formats.frames import rows_to_frame
from connectors.formats.text import TextFile
from ingestd.sdk import Section
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, row_positions

SECTION_BYTES = 48 * 2**10
"""The minimum number of bytes of a section. Only the last section may be smaller."""

_LINES = 16
"""After the minimum size, on average one in 16 lines ends a section. A hash of the line decides, so an edit moves few ends."""

_MOST = 4
"""A line that reaches this multiple of the minimum size ends the section, whatever its hash."""

_KNOWN_BYTES = 256 * 2**20
"""A chunk is yielded after this number of bytes in known sections, so that a reading can be stopped."""

_SEEDS = (0, 1)
_DIGEST = Struct("<8sQQ")


class _Block(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive sections: their bytes, and for each section its end in these bytes and its digest.

    ``final``: the file ends after these sections.
    """

    data: bytes
    ends: list[int]
    digests: list[bytes]
    final: bool

    def start(self, index: int) -> int:
        return self.ends[index - 1] if index else 0


@dataclass(slots=True, kw_only=True)
class SectionCutter:
    """Divides a text into sections.

    ``rest``: bytes that were read but are in no section yet. ``context``: see `digest_context`.
    """

    text: TextFile
    rest: bytes
    context: bytes
    section_bytes: int
    block_bytes: int
    record_bytes: int

    def read(self, size: int) -> bytes:
        """Read about ``size`` bytes; return nothing at the end."""
        if not self.rest:
            return self.text.read(size)
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece

    def unread(self, data: bytes) -> None:
        """Put back bytes that were read. The next section begins with these bytes."""
        self.rest = data + self.rest

    def blocks(self) -> Iterator[_Block]:
        """Yield the rest of the text, about ``block_bytes`` at a time."""
        final = False
        while not final or self.rest:
            more = self.text.read(self.block_bytes)
            final = not more
            data = self.rest + more
            ends: list[int] = []
            while (end := self._end(data, ends[-1] if ends else 0, final=final)) is not None:
                ends.append(end)
            size = ends[-1] if ends else 0
            self.rest = data[size:]
            if ends:
                yield _Block(data=data, ends=ends, digests=self._digests(data, ends), final=final)

    def _end(self, data: bytes, start: int, *, final: bool) -> int | None:
        """Return the end of the section at ``start``; None if more bytes are needed to find it, or if there are no bytes."""
        at = data.find(b"\n", start + self.section_bytes)
        while at >= 0:
            line_end = data.find(b"\n", at + 1)
            if line_end < 0:
                break
            is_long = line_end - start >= _MOST * self.section_bytes
            if is_long or not zlib.crc32(data[at + 1 : line_end]) % _LINES:
                return line_end + 1
            at = line_end
        if final:
            return len(data) if start < len(data) else None
        if len(data) - start > self.record_bytes + _MOST * self.section_bytes:
            # A line is too long, and may be cut. The section is too large to be read by columns, so it never becomes known.
            return (data.rfind(b"\n", start) + 1) or len(data)
        return None

    def _digests(self, data: bytes, ends: list[int]) -> list[bytes]:
        # Two 64-bit hashes with different seeds: 128 bits.
        parts = pl.Series([data[start:end] for start, end in zip([0, *ends], ends, strict=False)], dtype=pl.Binary)
        hashes = [parts.hash(seed).to_list() for seed in _SEEDS]
        return [_DIGEST.pack(self.context, *pair) for pair in zip(*hashes, strict=True)]


class SectionReader:
    """Reads the records after the header. The records of ``known`` sections are only counted.

    ``known``: the number of records of each section, by its digest.
    """

    def __init__(
        self,
        cutter: SectionCutter,
        encoding: str,
        header: Header,
        layout: Layout,
        known: Mapping[bytes, int],
        *,
        record_bytes: int,
    ) -> None:
        self._cutter = cutter
        self._known = known
        self._names = header.names
        self._location = header.end
        self._left = b""
        """The beginning of a record that continues in the next section."""
        self._reader = BlockReader(cutter.read, encoding, header, layout, record_bytes)
        self._record_bytes = record_bytes
        self._chunks: list[RecordChunk] = []
        self._sections: list[Section] = []
        self._parsed_bytes = self._known_bytes = 0

    def chunks(self) -> Iterator[RecordChunk]:
        """Yield the records with their sections. A chunk also lists the known sections that were skipped."""
        for block in self._cutter.blocks():
            self._read_block(block)
            # If many blocks have few new records, they are yielded as one chunk, because mapping a chunk has some overhead.
            if self._parsed_bytes > self._known_bytes or self._known_bytes >= _KNOWN_BYTES:
                yield self._take()
        if self._left and (chunk := self._reader.read_tolerant(self._left, self._location, final=True)) is not None:
            self._add(chunk)
        if self._sections:
            yield self._take()

    def _read_block(self, block: _Block) -> None:
        index, one_by_one, count = 0, 0, len(block.ends)
        while index < count:
            is_known = block.digests[index] in self._known and not self._reader.order.is_changed
            if not self._left and is_known:
                self._skip(block, index)
                index += 1
                continue
            end = index + 1
            if self._left:  # a record that continues is read again, so add at least as many bytes as before
                while end < count and block.ends[end - 1] - block.start(index) < len(self._left):
                    end += 1
            elif index >= one_by_one:
                while end < count and block.digests[end] not in self._known:
                    end += 1
            if not self._left and self._read_by_columns(block, index, end):
                index = end
            elif end - index > 1 and not self._left:
                one_by_one = end  # read these sections one by one, because most may still be read by columns
            elif self._read_tolerant(block, index, end):
                index = end
            else:
                return

    def _skip(self, block: _Block, index: int) -> None:
        digest = block.digests[index]
        records, size = self._known[digest], block.ends[index] - block.start(index)
        self._location = RecordLocation(offset=self._location.offset + size, row=self._location.row + records)
        self._sections.append(Section(digest=digest, records=records, known=True))
        self._known_bytes += size

    def _read_by_columns(self, block: _Block, index: int, end: int) -> bool:
        """Read the sections from ``index`` to before ``end`` by columns; return False if that is not possible."""
        lines = [count_lines(block.data, block.start(one), block.ends[one]) for one in range(index, end)]
        data = block.data[block.start(index) : block.ends[end - 1]]
        chunk = self._reader.read_by_columns(data, self._location, lines=sum(lines))
        if chunk is None:
            return False
        digests = block.digests[index:end]
        sections = (Section(digest=digest, records=count) for digest, count in zip(digests, lines, strict=True))
        self._add(chunk, *sections)
        return True

    def _read_tolerant(self, block: _Block, index: int, end: int) -> bool:
        """Read the sections record by record. If a record is too large, put back the bytes after it and return False."""
        final = block.final and end == len(block.ends)
        buffer = self._left + block.data[block.start(index) : block.ends[end - 1]]
        chunk = self._reader.read_tolerant(buffer, self._location, final=final)
        if chunk is None and len(buffer) > self._record_bytes:
            self._cutter.unread(block.data[block.ends[end - 1] : block.ends[-1]])
            chunk, rest = self._reader.skip_record(buffer, self._location)
            self._cutter.unread(rest)
            self._left = b""
            self._add(chunk)
            return False
        self._left = buffer if chunk is None else buffer[chunk.end.offset - self._location.offset :]
        if chunk is not None:
            self._add(chunk)
        return True

    def _add(self, chunk: RecordChunk, *sections: Section) -> None:
        self._parsed_bytes += chunk.end.offset - self._location.offset
        self._location = chunk.end
        self._chunks.append(chunk)
        self._sections += sections or [Section(digest=b"", records=chunk.records.height)]

    def _take(self) -> RecordChunk:
        """Return the records and the sections since the last call as one chunk."""
        chunks, sections = self._chunks, tuple(self._sections)
        self._chunks, self._sections, self._parsed_bytes, self._known_bytes = [], [], 0, 0
        if not chunks:
            records, positions = rows_to_frame([], self._names), row_positions([])
        elif len(chunks) == 1:
            records, positions = chunks[0].records, chunks[0].positions
        else:
            records, positions = (
                pl.concat([one.records for one in chunks]),
                pl.concat([one.positions for one in chunks]),
            )
        rejects = tuple(reject for one in chunks for reject in one.rejects)
        return RecordChunk(
            records=records, positions=positions, rejects=rejects, end=self._location, header=True, sections=sections
        )


def digest_context(header: Header, layout: Layout, facts: Mapping[str, str], record_bytes: int) -> bytes:
    """Return the context of the digests of a file's sections: a hash of everything else that decides how bytes are read."""
    content = (header.names, header.dialect, layout, sorted(facts.items()), record_bytes, _versions())
    return hashlib.sha256(repr(content).encode(errors="surrogatepass")).digest()[:8]


@cache
def _versions() -> tuple[str, str]:
    """Return the versions of the programs that read and hash a section."""
    return version("ingestd"), version("polars")
