"""The records of a reading, as row hashes in the order of their source, and the sections of the source that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl

from ingestd.core.record import Section
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import Snapshot

SPILL_PARTS = 2
"""The number of parts of a spill file of row hashes: those of the reading, and those of the previous one."""

_IN_MEMORY = 2_000_000
"""The number of row hashes of a reading that are collected in memory, 16 MB."""

_SLICE = 1 << 20
"""Previous row hashes that are written to the spill file at a time."""

_READING, _PREVIOUS = range(SPILL_PARTS)


class _Range(msgspec.Struct, frozen=True):
    """Hashes of the previous reading, by their indexes."""

    start: int
    end: int


class SeenRecords:
    """Collects the row hashes of a reading. Those of known sections are taken from the previous reading.

    ``spill``: an empty file with `SPILL_PARTS` parts; None: all hashes stay in memory.
    """

    def __init__(self, spill: SpillFile | None = None) -> None:
        self._spill = spill
        self._parts: list[pl.Series | _Range | None] = []
        """What was collected, in order. None: the next frame of the spill file."""
        self._collected = 0
        self._previous: pl.Series | None = None
        self._known: dict[bytes, _Range] = {}
        self._digests: list[bytes] = []
        self._records: list[int] = []
        self._has_sections = True

    def know(self, previous: Snapshot) -> dict[bytes, int]:
        """Use the sections of the previous reading; return the number of records of each, by digest."""
        start = 0
        if previous.sections is not None:
            self._previous = previous.hashes
            for digest, records in previous.sections.iter_rows():
                if digest:
                    self._known[digest] = _Range(start, start + records)
                start += records
        return {digest: found.end - found.start for digest, found in self._known.items()}

    def release_memory(self) -> None:
        """Move many previous hashes to the spill file: the caller needs their memory, and few of them may be needed again."""
        if self._spill is not None and self._previous is not None and self._previous.len() >= _IN_MEMORY:
            for piece in self._previous.to_frame("row_hash").iter_slices(_SLICE):
                self._spill.append(_PREVIOUS, piece)
            self._previous = None

    def add(self, hashes: pl.Series, sections: Sequence[Section]) -> None:
        """Add the hashes of a batch, and those of known sections between them.

        Raises:
            LookupError: the sections have another number of records than the batch, or a known one is not known.
        """
        self._has_sections = self._has_sections and bool(sections or not hashes.len())
        if sections and sum(one.records for one in sections if not one.known) != hashes.len():
            raise LookupError(f"they do not have {hashes.len()} records together")
        for section in sections:
            self._digests.append(section.digest)
            self._records.append(section.records)
        if not any(section.known for section in sections):
            self._collect(hashes)
            return
        start = 0
        for section in sections:
            if section.known:
                self._add_known(section)
            else:
                self._collect(hashes[start : start + section.records])
                start += section.records

    def end(self) -> Snapshot:
        """Return all records. The previous reading is released."""
        nothing = pl.Series("row_hash", [], dtype=pl.UInt64)
        previous = self._previous if self._previous is not None else nothing
        if self._previous is None and any(isinstance(part, _Range) for part in self._parts):
            previous = pl.concat([nothing, *self._frames(_PREVIOUS)], rechunk=False)
        spilled = self._frames(_READING)
        parts = [
            previous[part.start : part.end] if isinstance(part, _Range) else next(spilled) if part is None else part
            for part in self._parts
        ]
        sections = None
        if self._has_sections and self._digests:
            sections = pl.DataFrame(
                {"digest": self._digests, "records": self._records}, schema={"digest": pl.Binary, "records": pl.UInt32}
            )
        self._previous = None
        self._parts, self._known = [], {}
        return Snapshot(hashes=pl.concat([nothing, *parts], rechunk=False), sections=sections)

    def _add_known(self, section: Section) -> None:
        found = self._known.get(section.digest)
        if found is None or found.end - found.start != section.records:
            raise LookupError("one of them is not known")
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Range) and last.end == found.start:  # consecutive sections are taken at once
            self._parts[-1] = _Range(last.start, found.end)
        else:
            self._parts.append(found)

    def _collect(self, hashes: pl.Series) -> None:
        self._parts.append(hashes)
        self._collected += hashes.len()
        if self._spill is None or self._collected < _IN_MEMORY:
            return
        for number, part in enumerate(self._parts):
            if isinstance(part, pl.Series):
                self._spill.append(_READING, part.to_frame("row_hash"))
                self._parts[number] = None
        self._collected = 0

    def _frames(self, part: int) -> Iterator[pl.Series]:
        return (frame.to_series() for frame in self._spill.frames(part)) if self._spill is not None else iter(())
