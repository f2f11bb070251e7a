"""The CSV reader: reads the same records as Python's csv module, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from msgspec.structs import replace

from connectors.formats.column_order import ColumnOrder
from connectors.formats.csv.block_reader import BlockReader
from connectors.formats.csv.dialect import DEFAULT_LAYOUT, UNDETECTED, Dialect, Layout
from connectors.formats.csv.header import Header, read_header
from connectors.formats.csv.sections import SECTION_BYTES, SectionCutter, SectionReader, digest_context
from connectors.formats.frames import rows_to_frame
from connectors.formats.text import DETECT, TextFile, open_text
from ingestd.sdk.formats.record_chunk import BLOCK_BYTES, RECORD_BYTES, RecordChunk, RecordLocation, row_positions


def read_csv(
    file: BinaryIO,
    name: str,
    *,
    dialect: Dialect = UNDETECTED,
    layout: Layout = DEFAULT_LAYOUT,
    encoding: str = DETECT,
    start: RecordLocation | None = None,
    block_bytes: int = BLOCK_BYTES,
    record_bytes: int = RECORD_BYTES,
    known: Mapping[bytes, int] | None = None,
    section_bytes: int = SECTION_BYTES,
    order: ColumnOrder | None = None,
) -> Iterator[RecordChunk]:
    """Yield the records of a CSV file, at least one chunk.

    Parts that ``dialect`` and ``encoding`` leave open are detected. Values are the exact text of the file, including spaces; an
    empty cell is the empty text. A position is the row number as in a spreadsheet, from 1. A blank line has a number but is no
    record. ``start``: the ``end`` of an earlier chunk (None: the beginning), for files in UTF-8. Records that don't fit
    the header are rejected, and the other records are read.

    ``known``: for sections that need not be read, the number of records by digest. None: the chunks have no sections.
    ``section_bytes``: the minimum size of a section. ``order``: see `BlockReader`; it must be None if ``known`` is given.

    Raises:
        SourceBroken: the file is empty or its header can't name columns.
    """
    text = open_text(file, encoding)
    header = read_header(text, name, dialect=dialect, layout=layout, block_bytes=block_bytes, record_bytes=record_bytes)
    facts = _facts(text, header)
    location = start or header.end
    if known is not None:
        cutter = SectionCutter(
            text=text,
            rest=header.rest,
            context=digest_context(header, layout, facts, record_bytes),
            section_bytes=section_bytes,
            block_bytes=block_bytes,
            record_bytes=record_bytes,
        )
        sections = SectionReader(cutter, text.encoding.name, header, layout, known, record_bytes=record_bytes)
        chunks = sections.chunks()
    else:
        if start is not None:
            text.seek(start.offset)
        rest = header.rest if start is None else b""
        reader = BlockReader(text.read, text.encoding.name, header, layout, record_bytes, order=order)
        chunks = reader.chunks(rest, location, block_bytes)
    is_empty = True
    for chunk in chunks:
        is_empty = False
        location = chunk.end
        yield replace(chunk, facts=facts | text.facts)
    if is_empty:
        yield RecordChunk(
            records=rows_to_frame([], header.names),
            positions=row_positions([]),
            end=location,
            header=True,
            facts=facts | text.facts,
        )


def _facts(text: TextFile, header: Header) -> dict[str, str]:
    """Return the facts about how the file was read: encoding, delimiter, header row, units and preamble."""
    units = {f"units.{column}": unit for column, unit in header.units.items()}
    row = {"file.header_row": str(header.row)} if header.row else {}
    return {**text.encoding.facts, "file.delimiter": header.dialect.delimiter_name, **row, **units, **header.preamble}
