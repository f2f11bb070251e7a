"""Detection of new records by their row hashes, before they are mapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Section
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import Snapshot
from ingestd.mirror.row_hashes import RowHashes

_JOINED_RATIO = 16
"""A batch is joined with the previous hashes only up to this ratio of previous hashes to hashes of the batch.

A join takes half the time of a search (measured), but it reads all previous hashes. With many small batches in a large reading,
this time would grow with the square of the number of batches. The sorted previous hashes are then searched instead.
"""

_SCANS = 4
"""The number of small batches that are compared with the unsorted previous hashes. A sort takes as long as six scans."""


class Difference:
    """Compares the row hashes of a reading with the row hashes of the previous reading."""

    def __init__(self, load_previous: Callable[[], Snapshot] | None, spill: SpillFile | None = None) -> None:
        """``load_previous`` returns the previous reading; None: every record is new.

        ``spill``: an empty file with `SPILL_PARTS` parts for the hashes of large readings; None: they stay in memory.
        """
        self._load_previous = load_previous
        self._previous: pl.Series | None = None
        self._is_sorted = False
        self._scans = 0
        self._seen = SeenRecords(spill)

    def load(self) -> None:
        """Load the row hashes of the previous reading, unless they are loaded already."""
        if self._load_previous is not None:
            self._previous = self._load_previous().hashes.series()
            self._load_previous = None

    def load_sections(self) -> dict[bytes, int]:
        """Load the previous reading. Return the record counts of the sections, by digest, that `mask_new` accepts as known."""
        if self._load_previous is None:
            return {}
        previous, self._load_previous = self._load_previous(), None
        self._previous = previous.hashes.series()
        return self._seen.know(self._previous, previous.sections)

    def mask_new(self, hashes: pl.Series, sections: Sequence[Section] = ()) -> pl.Series:
        """Return a boolean mask over ``hashes``: True if the previous reading had no such record.

        The hashes, and the hashes of known ``sections`` between them, are added to the result of `seen`.

        Raises:
            SourceBroken: the sections do not fit the hashes, or a section that is marked as known is not known.
        """
        self.load()
        try:
            self._seen.add(hashes, sections)
        except LookupError as error:
            raise SourceBroken(f"The connector returned sections that do not fit its records: {error}") from error
        if self._previous is None or not self._previous.len():
            return _repeat(hashes.len(), is_new=True)
        missing = self._find_missing(self._previous, hashes)
        if not missing.len():
            return _repeat(hashes.len(), is_new=False)
        # A record is new if its hash is new. So the new hashes mark the records, and the order of the batch need not be
        # restored.
        return hashes.is_in(missing.implode())

    def seen(self) -> Snapshot:
        """Return all records of this reading. Call it last, because it deletes the previous hashes."""
        self._previous = None  # the previous hashes are no longer needed, and are as large as the result
        return self._seen.end()

    def _find_missing(self, previous: pl.Series, hashes: pl.Series) -> pl.Series:
        """Return the values of ``hashes`` that are not in ``previous``. ``previous`` is not empty."""
        is_small = previous.len() > _JOINED_RATIO * hashes.len()
        if not self._is_sorted and is_small and self._scans < _SCANS:
            self._scans += 1
            present = previous.filter(previous.is_in(hashes.implode()))
            return hashes.filter(~hashes.is_in(present.implode()))
        if not self._is_sorted:
            self._previous = previous = previous.sort()
            self._is_sorted = True
            self._seen.release_memory()
        ordered = hashes.sort()
        if is_small:
            indexes = previous.search_sorted(ordered).clip(0, previous.len() - 1)
            return ordered.filter(previous.gather(indexes) != ordered)
        # For each value, an as-of join finds the greatest previous hash that is not above the value. It reads both series once.
        joined = (
            ordered.alias("hash")
            .to_frame()
            .set_sorted("hash")
            .join_asof(
                previous.alias("previous").to_frame().set_sorted("previous"),
                left_on="hash",
                right_on="previous",
                coalesce=False,
            )
        )
        return joined.filter(pl.col("hash").ne_missing(pl.col("previous")))["hash"]


def _repeat(count: int, *, is_new: bool) -> pl.Series:
    # `pl.repeat` evaluates an expression, which takes longer than the whole comparison of a small file.
    return pl.Series([is_new]).new_from_index(0, count)


SPILL_PARTS = 2
"""The number of parts of a spill file of row hashes: one for the reading, and one for the previous reading."""

_IN_MEMORY = 2_000_000
"""Maximum number of row hashes of a reading that are collected in memory (16 MB)."""

_SLICE = 1 << 17
"""The number of previous row hashes that are written to the spill file at once."""

_READING, _PREVIOUS = range(SPILL_PARTS)


class _Range(msgspec.Struct, frozen=True):
    """Hashes of the previous reading, by their indexes."""

    start: int
    end: int


class SeenRecords:
    """Collects the row hashes of a reading. Hashes of known sections are taken from the previous reading.

    ``spill``: an empty file with `SPILL_PARTS` parts; None: all hashes stay in memory.
    """

    def __init__(self, spill: SpillFile | None = None) -> None:
        self._spill = spill
        self._parts: list[pl.Series | _Range | None] = []
        """The collected hashes, in order. None: the next frame of the spill file."""
        self._collected = self._count = 0
        self._previous: pl.Series | None = None
        self._slice: tuple[int, pl.Series] | None = None
        """The slice of the previous hashes that was read last from the spill file, with its number."""
        self._known: dict[bytes, _Range] = {}
        self._digests: list[bytes] = []
        self._records: list[int] = []
        self._has_sections = True

    def know(self, previous: pl.Series, sections: pl.DataFrame | None) -> dict[bytes, int]:
        """Use the sections of the previous reading; return the number of records of each section, by digest."""
        start = 0
        if sections is not None:
            self._previous = previous
            for digest, records in sections.iter_rows():
                if digest:
                    self._known[digest] = _Range(start, start + records)
                start += records
        return {digest: found.end - found.start for digest, found in self._known.items()}

    def release_memory(self) -> None:
        """Move many previous hashes to the spill file.

        The caller needs the memory, and probably needs only a small number of these hashes again.
        """
        if self._spill is not None and self._previous is not None and self._previous.len() >= _IN_MEMORY:
            for piece in self._previous.to_frame("row_hash").iter_slices(_SLICE):
                self._spill.append(_PREVIOUS, piece)
            self._previous = None

    def add(self, hashes: pl.Series, sections: Sequence[Section]) -> None:
        """Add the hashes of a batch, and the hashes of known sections between them.

        Raises:
            LookupError: the sections have another number of records than the batch, or a section that is marked as known is not
            known.
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
        """Return all records. They can be read until the spill file is closed."""
        sections = None
        if self._has_sections and self._digests:
            sections = pl.DataFrame(
                {"digest": self._digests, "records": self._records}, schema={"digest": pl.Binary, "records": pl.UInt32}
            )
        self._known = {}
        return Snapshot(hashes=RowHashes(self._pieces, self._count), sections=sections)

    def _pieces(self) -> Iterator[pl.Series]:
        """Yield the collected hashes, in order."""
        spilled = self._frames(_READING)
        for part in self._parts:
            if isinstance(part, _Range):
                yield from self._previous_records(part)
            else:
                yield next(spilled) if part is None else part

    def _previous_records(self, part: _Range) -> Iterator[pl.Series]:
        """Yield hashes of the previous reading."""
        if self._previous is not None:
            yield self._previous[part.start : part.end]
            return
        start = part.start
        while start < part.end:
            number, first = divmod(start, _SLICE)
            yield self._previous_slice(number)[first : first + part.end - start]
            start = (number + 1) * _SLICE

    def _previous_slice(self, number: int) -> pl.Series:
        """Return a slice of the previous hashes from the spill file."""
        if self._slice is None or self._slice[0] != number:
            if self._spill is None:
                raise LookupError("the previous hashes are neither in memory nor in a file")
            self._slice = (number, self._spill.frame(_PREVIOUS, number).to_series())
        return self._slice[1]

    def _add_known(self, section: Section) -> None:
        found = self._known.get(section.digest)
        if found is None or found.end - found.start != section.records:
            raise LookupError("one of them is not known")
        self._count += section.records
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Range) and last.end == found.start:  # consecutive sections are taken at once
            self._parts[-1] = _Range(last.start, found.end)
        else:
            self._parts.append(found)

    def _collect(self, hashes: pl.Series) -> None:
        self._parts.append(hashes)
        self._collected += hashes.len()
        self._count += hashes.len()
        if self._spill is None or self._collected < _IN_MEMORY:
            return
        for number, part in enumerate(self._parts):
            if isinstance(part, pl.Series):
                self._spill.append(_READING, part.to_frame("row_hash"))
                self._parts[number] = None
        self._collected = 0

    def _frames(self, part: int) -> Iterator[pl.Series]:
        return (frame.to_series() for frame in self._spill.frames(part)) if self._spill is not None else iter(())
