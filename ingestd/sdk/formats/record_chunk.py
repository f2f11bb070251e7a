"""The chunk of consecutive records, which every format yields, and its conversion to a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.unreadable import reject_unreadable
from ingestd.sdk import Batch, Cursor, Reject, Section, SourceBroken, UnreadableColumn

BLOCK_BYTES = 4 * 2**20
"""The number of bytes that are read at a time: large enough for columnar processing, small enough to limit memory."""

RECORD_BYTES = 16 * 2**20
"""The maximum size of a record; a larger record is rejected. Otherwise one missing quote could load a file into memory."""


class RecordLocation(msgspec.Struct, frozen=True, kw_only=True):
    """A location between two records: the offset of the next record, and the row of the previous record.

    The offset counts bytes of the text in UTF-8, which are the bytes of the file if its encoding is UTF-8.
    """

    offset: int = 0
    row: int = 0


class RecordChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive records of a file.

    ``records``: columns of ``pl.String``. ``positions``: one for each record; ``pl.Int64`` row numbers as the format counts
    rows, or ``pl.String`` if positions contain more than a row number. ``rejects``: the records that could not be read.
    ``end``: the location at which reading can be resumed. ``header``: the columns come from the header of the file.
    ``facts``: facts about the file, such as ``file.encoding``. ``total``: the number of records in the whole file, including
    rejected records, if the file states it, for example in a footer. All chunks have the same total. If a different number is
    read, the file is rejected. ``partial`` and ``resolves`` (of resubmitted rows), ``sections``, ``unreadable``: see `Batch`.
    """

    records: pl.DataFrame
    positions: pl.Series
    rejects: tuple[Reject, ...] = ()
    end: RecordLocation
    header: bool = False
    total: int | None = None
    facts: Mapping[str, str] = msgspec.field(default_factory=dict)
    partial: bool = False
    resolves: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    unreadable: tuple[UnreadableColumn, ...] = ()

    def to_batch(self, cursor: Cursor, facts: Mapping[str, str], *, last: bool = False) -> Batch:
        """Return the chunk as a batch that ends at ``cursor``. The chunk's facts take precedence over ``facts``."""
        return Batch(
            records=self.records,
            positions=self.positions,
            cursor=cursor,
            facts={**facts, **self.facts},
            rejects=self.rejects,
            last=last,
            header=self.header,
            partial=self.partial,
            resolves=self.resolves,
            sections=self.sections,
            unreadable=self.unreadable,
        )

    def without_unreadable(self) -> RecordChunk:
        """Return the chunk; each record with an unreadable value, in any column, is moved to its ``rejects``.

        Raises:
            SourceBroken: a column can't be read as a whole.
        """
        if not self.unreadable:
            return self
        batch = reject_unreadable(self.to_batch({}, {}), None)
        return replace(
            self, records=batch.records, positions=batch.positions, rejects=batch.rejects, unreadable=batch.unreadable
        )


def check_count(chunks: Iterator[RecordChunk], name: str) -> Iterator[RecordChunk]:
    """Yield the chunks of a whole file, and check their number of records. Every reading of a format uses this check.

    Raises:
        SourceBroken: after the last chunk, if the number of records is not the number that the chunks state.
    """
    read, total = 0, None
    for chunk in chunks:
        read += chunk.records.height + len(chunk.rejects)
        total = chunk.total
        yield replace(chunk, total=None)  # a reading may consist of several files
    if total is not None and total != read:
        raise SourceBroken(
            f"{name} is damaged: it states {total} records, but {read} can be read. Have the file written again."
        )


def row_positions(rows: Sequence[int]) -> pl.Series:
    """Return row numbers as the positions of records."""
    return pl.Series("position", rows, dtype=pl.Int64)


_STRAY = re.compile("\udced([\udcb0-\udcb3])([\udc80-\udcbf])")


def escape_stray_bytes(text: str) -> str:
    r"""Return the text with each stray byte (a lone surrogate) as an escape such as ``\xe4``. The result is valid UTF-8."""
    if text.isascii():
        return text
    return _STRAY.sub(_one_byte, text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _one_byte(found: re.Match[str]) -> str:
    """Return the escape of a byte that is not UTF-8, from the three bytes by which `connectors.formats.text` represents it."""
    return f"\\x{(ord(found[1]) & 3) << 6 | ord(found[2]) & 0x3F:02x}"
