"""The batches of one reading of a partition; the batches of a small partition are read before its transaction begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from ingestd.core.errors import RecordUnreadable, SourceBroken, SourceUnavailable
from ingestd.core.mapping import PreparedBatch
from ingestd.core.record import Batch, Cursor, Partition
from ingestd.intake.run import checked_batches

_MAX_RECORDS = 500
"""A partition with more records is not stored together with other partitions."""


class PartitionBatches:
    """The batches of ``partition`` after ``cursor``, which ``source`` yields.

    Use it as a context: its end closes the source's file.
    """

    def __init__(self, source: Iterator[Batch | RecordUnreadable], partition: Partition, cursor: Cursor | None) -> None:
        self.partition = partition
        self.cursor = cursor
        self._source = checked_batches(source)
        self.fetched: list[Batch] = []
        """The batches that `fetch` has read."""
        self.mapped: PreparedBatch | None = None
        """The result of the first batch of ``fetched``, if it was mapped together with batches of other partitions."""
        self._failure: SourceUnavailable | SourceBroken | None = None
        self._is_fetched = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the source's file."""
        self._source.close()

    def fetch(self) -> bool:
        """Read the first batch. Return True if the source is no longer needed: the reading is small, or it failed."""
        try:
            for batch in self._source:
                self.fetched.append(batch)
                if len(self.fetched) > 1 or not batch.last or batch.records.height > _MAX_RECORDS:
                    return False
        except (SourceUnavailable, SourceBroken) as failure:
            self._failure = failure.with_traceback(None)  # a traceback would keep the source's file open
        self._is_fetched = True
        return True

    @property
    def records(self) -> int:
        """The number of records that were fetched."""
        return sum(batch.records.height for batch in self.fetched)

    def prepared(self, batch: Batch) -> PreparedBatch | None:
        """Return the result of a batch if it was mapped together with other batches; else None."""
        return self.mapped if self.fetched and batch is self.fetched[0] else None

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches, once.

        Raises:
            SourceUnavailable: the source is not reachable now.
            SourceBroken: the connector reported this, failed, or violated its contract.
        """
        yield from self.fetched
        if self._failure is not None:
            raise self._failure
        if not self._is_fetched:
            yield from self._source
