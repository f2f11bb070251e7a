"""Records as chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from connectors.formats.frames import field_names, records_to_frame
from ingestd.sdk import Reject, SourceBroken
from ingestd.sdk.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation, row_positions

ROWS = 10_000
CELLS = 4_000_000

FieldTexts: TypeAlias = dict[str, str | None]
"""The fields of a record."""


class Unusable(msgspec.Struct, frozen=True):
    """A record that is rejected. ``reason``: a sentence. ``record``: the fields that are kept for the reject."""

    reason: str
    record: FieldTexts


def make_chunks(records: Iterable[FieldTexts | Unusable], row: int = 0, *, rows: int = ROWS) -> Iterator[RecordChunk]:
    """Yield records as chunks, at least one chunk. ``row``: the number of the record before the first record.

    The records before an error are yielded before the error is raised. A record without fields gets an empty field ``text``.

    Raises:
        SourceBroken: ``records`` raised it.
    """
    buffered: list[FieldTexts | Unusable] = []
    names: set[str] = set()
    size = 0
    try:
        for one in records:
            buffered.append(one)
            fields = one if isinstance(one, dict) else one.record
            names.update(fields)
            size += sum(map(len, filter(None, fields.values())))
            if len(buffered) >= rows or len(buffered) * len(names) > CELLS or size > RECORD_BYTES:
                row += len(buffered)
                yield _chunk(buffered, row)
                buffered, names, size = [], set(), 0
    except SourceBroken:
        if buffered:
            yield _chunk(buffered, row + len(buffered))
        raise
    yield _chunk(buffered, row + len(buffered))


def _chunk(found: Sequence[FieldTexts | Unusable], row: int) -> RecordChunk:
    """Return the chunk of records. The last record has the number ``row``."""
    numbered = list(enumerate(found, start=row - len(found) + 1))
    records = {number: one or {"text": ""} for number, one in numbered if isinstance(one, dict)}
    return RecordChunk(
        records=records_to_frame(list(records.values()), field_names(records.values())),
        positions=row_positions(list(records)),
        rejects=tuple(
            Reject(position=number, reason=one.reason, record=one.record)
            for number, one in numbered
            if isinstance(one, Unusable)
        ),
        end=RecordLocation(row=row),
    )
