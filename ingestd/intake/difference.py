"""Detection of new records by their row hashes, before they are mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Section
from ingestd.intake.seen_records import SeenRecords
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import Snapshot

_JOINED_RATIO = 16
"""A batch is joined with at most this many previous hashes for each of its own; measured: half the time of a search.

A join reads all previous hashes. With many batches in one large reading, its time would grow with their square.
A search of the batch's sorted hashes takes its place then.
"""

_SCANS = 4
"""The number of small batches that are compared with the unsorted previous hashes. Sorting these takes as long as six scans."""


class Difference:
    """Compares the row hashes of a reading with those of the previous one."""

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
            self._previous = self._load_previous().hashes
            self._load_previous = None

    def load_sections(self) -> dict[bytes, int]:
        """Load the previous reading; return the number of records of its sections, by digest. `mask_new` knows these."""
        if self._load_previous is None:
            return {}
        previous, self._load_previous = self._load_previous(), None
        self._previous = previous.hashes
        return self._seen.know(previous)

    def mask_new(self, hashes: pl.Series, sections: Sequence[Section] = ()) -> pl.Series:
        """Return a boolean mask over ``hashes``: True if the previous reading had no such record.

        The hashes, and those of known ``sections`` between them, are added to those that `seen` returns.

        Raises:
            SourceBroken: the sections do not fit the hashes, or one that is named as known is not known.
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
        # A record is new if its hash is new. So the new hashes mark the records, and nothing restores the order of the batch.
        return hashes.is_in(missing.implode())

    def seen(self) -> Snapshot:
        """Return all records of this reading. Nothing can be compared afterwards."""
        self._previous = None  # no longer needed, and as large as the result
        return self._seen.end()

    def _find_missing(self, previous: pl.Series, hashes: pl.Series) -> pl.Series:
        """Return the values of ``hashes`` that ``previous`` lacks, which is not empty."""
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
        # For each value, an as-of join finds the greatest previous hash that is not above it. It reads both from start to end.
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
