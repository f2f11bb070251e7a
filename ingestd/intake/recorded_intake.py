"""A mirror's intake that records the content of each partition's reading."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.record import Partition, Reject
from ingestd.mirror.port import PartitionState, RunSummary, Snapshot
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore

_PAGE = 65_536
"""The number of row hashes that are added to a digest at once."""


class PartitionReading(msgspec.Struct, kw_only=True):
    """The reading of a partition that had something to read. ``failure``: why it ended early, or empty.

    ``records``, ``rejected``: the number of records and of rejections. ``content``: a digest of the records, which does not
    depend on the batches. ``notice``: a sentence about guesses and omissions of the reading, such as keys with several values.
    """

    records: int = 0
    rejected: int = 0
    failure: str = ""
    notice: str = ""
    _entries: Any = msgspec.field(default_factory=hashlib.sha256)
    _rejects: Any = msgspec.field(default_factory=hashlib.sha256)
    _seen: Any = msgspec.field(default_factory=hashlib.sha256)

    @property
    def content(self) -> str:
        """The digest of the records that were read so far."""
        parts = (self._entries.hexdigest(), self._rejects.hexdigest(), self._seen.hexdigest(), str(self.records))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def add(self, entries: pl.DataFrame, rejects: Sequence[tuple[Reject, int | None]], records: int) -> None:
        """Add a batch."""
        self.records += records
        _update(self._entries, entries["row_hash"])
        for reject, row_hash in rejects:
            self._rejects.update(f"{reject.position}\n{reject.reason}\n{row_hash}\n".encode(errors="surrogatepass"))

    def end(self, seen: Snapshot | None, summary: RunSummary) -> None:
        """Add the row hashes of a complete snapshot, and the counts."""
        if seen is not None:
            for part in seen.hashes.ranges():
                _update(self._seen, part.hashes)
        self.rejected += summary.rejected
        self.notice = summary.notice


def _update(digest: Any, hashes: pl.Series) -> None:
    for page in hashes.to_frame().iter_slices(_PAGE):
        digest.update(array("Q", page.to_series().to_list()).tobytes())


class RecordedIntake:
    """Passes the calls of a reader to ``intake``, and records them. Only one thread at a time may use it.

    ``readings``: the recorded readings, by id of the partition. ``opened``: by name of the pipeline, the ids of its partitions,
    also of partitions without new content. ``digests``: the digest of each pipeline's mapping, by name. ``on_records`` is
    called with the number of records of each batch.
    """

    def __init__(self, intake: IntakeStore, *, on_records: Callable[[int], None] = lambda _: None) -> None:
        self._intake = intake
        self._on_records = on_records
        self._runs: dict[int, PartitionReading] = {}
        self.readings: dict[int, PartitionReading] = {}
        self.opened: defaultdict[str, set[int]] = defaultdict(set)
        self.digests: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a method of the intake; its calls are not recorded."""
        return getattr(self._intake, name)

    def open_partition(self, pipeline: str, partition: Partition, sink: SinkAddress, digest: str) -> PartitionState:
        """See `PartitionOpener.open`."""
        state = self._intake.open_partition(pipeline, partition, sink, digest)
        self.digests[pipeline] = digest
        self.opened[pipeline].add(state.id)
        return state

    def begin_run(self, partition: int, *, snapshot: bool, **how: Any) -> int:
        """See `IntakeStore.begin_run`."""
        run = self._intake.begin_run(partition, snapshot=snapshot, **how)
        if snapshot or partition not in self.readings:  # a whole reading replaces an earlier reading with differences
            self.readings[partition] = PartitionReading()
        self._runs[run] = self.readings[partition]
        return run

    def commit(self, run: int, **batch: Any) -> int:
        """See `IntakeStore.commit`."""
        self._runs[run].add(batch["entries"], batch["rejects"], batch["records"])
        self._on_records(batch["records"])
        return self._intake.commit(run, **batch)

    def finish_run(self, run: int, *, seen: Snapshot | None, **end: Any) -> RunSummary:
        """See `IntakeStore.finish_run`."""
        summary = self._intake.finish_run(run, seen=seen, **end)
        self._runs.pop(run).end(seen, summary)
        return summary

    def fail_run(self, run: int, reason: str, **how: Any) -> None:
        """See `IntakeStore.fail_run`."""
        self._runs.pop(run).failure = reason
        self._intake.fail_run(run, reason, **how)
