"""One reading of one partition, batch by batch: difference, mapping, mirror."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ingestd.core.errors import RecordUnreadable, SourceBroken, SourceUnavailable
from ingestd.core.mapping import Mapped, Mapping
from ingestd.core.record import Batch, Partition, Reject
from ingestd.intake.difference import Difference
from ingestd.mirror.port import Intake, PartitionState, RunSummary
from ingestd.sdk.batches import attach_rejects

_WORTH_A_COMMIT = 5000
"""Entries of a snapshot reading are gathered up to one request's worth: ten changed rows of a million, spread over all of
it, are one transaction and one request."""


class Run:
    """One reading of one partition: begun with its first batch, ended with its last."""

    def __init__(
        self, mirror: Intake, mapping: Mapping, partition: Partition, state: PartitionState, *, whole: bool
    ) -> None:
        self._mirror = mirror
        self._mapping = mapping
        self._partition = partition
        self._state = state
        self._whole = whole or state.snapshot is None
        self._difference = Difference(None if self._whole else state.snapshot)
        self._id: int | None = None
        self._held: list[pl.DataFrame] = []
        self._held_rejects: list[tuple[Reject, int | None]] = []
        self._held_records = 0
        self._held_resolves: list[str] = []
        self._partial = False
        self._last: Batch | None = None
        self._header_known = False
        self.first_reject = ""

    def take(self, batch: Batch) -> RunSummary | None:
        """Bring a batch into the mirror; the run's summary where it was the last."""
        if self._partition.snapshot and not (batch.unchanged or batch.partial):
            self._difference.begin()  # before the run: what is asked for later is for the next one
        run = self._begin()
        if batch.unchanged:
            return self._mirror.finish_run(run, cursor=batch.cursor, seen=None, deletes="keep")
        if not self._header_known:
            self._mapping.check_header(batch)
            self._header_known = True
        hashes = self._mapping.row_hashes(batch.records, batch.facts)
        records, positions = batch.records, batch.positions
        self._partial = self._partial or batch.partial
        if self._partition.snapshot and not self._partial:
            fresh = self._difference.fresh(hashes)
            if not fresh.all():
                records, positions, hashes = records.filter(fresh), positions.filter(fresh), hashes.filter(fresh)
        mapped = self._mapping.apply(records, positions, hashes, batch.facts)
        self._hold(batch, mapped)
        held = sum(entries.height for entries in self._held) + len(self._held_rejects)
        # What is new in a snapshot can wait for its end; an incremental partition moves its cursor with each batch.
        if held >= _WORTH_A_COMMIT or batch.last or not self._partition.snapshot:
            self._commit(run, batch)
        if not batch.last:
            return None
        if self._partial:
            return self._mirror.finish_run(run, cursor=batch.cursor, seen=None, deletes="keep", partial=True)
        seen = self._difference.seen() if self._partition.snapshot else None
        return self._mirror.finish_run(run, cursor=batch.cursor, seen=seen, deletes=self._partition.deletes)

    def fail(self, reason: str, *, broken: bool) -> None:
        """The reading did not reach its end. A partition that can't be read at all is parked even before its first batch."""
        if self._id is None and not broken:
            return
        run = self._begin()
        if self._last is not None and broken:
            self._commit(run, self._last)  # what was read before the break stays, however much it was
        self._mirror.fail_run(run, reason, broken=broken)

    def _hold(self, batch: Batch, mapped: Mapped) -> None:
        rejects = [*((reject, None) for reject in batch.rejects), *mapped.rejects]
        if rejects and not self.first_reject:
            self.first_reject = f"{rejects[0][0].position}: {rejects[0][0].reason}"
        self._held_rejects += rejects
        self._held_records += batch.records.height + len(batch.rejects)
        self._held_resolves += batch.resolves
        if mapped.entries.height:
            self._held.append(mapped.entries)
        self._last = batch

    def _commit(self, run: int, batch: Batch) -> None:
        entries = pl.concat(self._held) if self._held else self._mapping.empty_entries(batch.positions.dtype)
        self._mirror.commit(
            run,
            entries=entries,
            records=self._held_records,
            rejects=self._held_rejects,
            cursor=batch.cursor,
            facts=batch.facts,
            resolved=self._held_resolves,
        )
        self._held, self._held_rejects, self._held_records, self._last = [], [], 0, None
        self._held_resolves = []

    def _begin(self) -> int:
        if self._id is None:
            self._id = self._mirror.begin_run(self._state.id, snapshot=self._partition.snapshot, whole=self._whole)
        return self._id


def checked_batches(reading: Iterator[Batch | RecordUnreadable]) -> Iterator[Batch]:
    """Yield the batches of a connector's reading, with its unreadable records as their rejects.

    Raises:
        SourceUnavailable: the source is not reachable now.
        SourceBroken: the connector reported this, failed, or violated its contract; the daemon itself goes on.
    """
    batches = attach_rejects(reading)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (SourceUnavailable, SourceBroken):
            raise
        except RecordUnreadable as error:
            location = f"record {error.position}" if error.position is not None else "a record"
            raise SourceBroken(
                f"The connector stopped at {location}, because it raised RecordUnreadable instead of yielding it. {error}"
            ) from error
        except Exception as error:
            raise SourceBroken(f"The connector failed: {str(error) or type(error).__name__}") from error
        if batch.records.height != batch.positions.len() or any(kind != pl.String for kind in batch.records.dtypes):
            raise SourceBroken(
                "The connector returned a batch with columns that are not text, or not as long as its positions."
            )
        yield batch
