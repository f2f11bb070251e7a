"""A run reads one partition once: it compares, maps and stores batch by batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from functools import partial
from typing import TypeVar

import polars as pl

from ingestd.core.contract import ContractCheck
from ingestd.core.errors import RecordUnreadable, SourceBroken, SourceUnavailable
from ingestd.core.guard import Guard
from ingestd.core.mapping import AbsentField, AbsentFields, Mapped, Mapping, PreparedBatch
from ingestd.core.record import NOTICE, Batch, Cursor, Partition, Position, Reject, located_reason, record_position
from ingestd.core.unreadable import reject_unreadable
from ingestd.intake.difference import Difference
from ingestd.intake.entry_sorter import EntrySorter
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.rejected_names import RejectedNames
from ingestd.intake.silent_records import SilentRecords
from ingestd.intake.spill_file import SpillFile
from ingestd.mirror.port import Amendment, PartitionState, RunSummary, Snapshot
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.progress import note_progress
from ingestd.process.redaction import redact_text
from ingestd.sdk.batches import attach_rejects

T = TypeVar("T")

_ENTRIES_IN_COMMIT = 5000
"""New entries of a snapshot are collected up to this number, the size of a request. So ten changed rows among a million need
one transaction and one request, even if they are in different batches."""

_ENTRIES_UNSORTED = 50_000
"""Entries of a snapshot beyond this number are sorted by key before they are stored."""

_SORTING_SECONDS = 10.0
"""After this time, sorted entries are stored although the reading continues; then the time doubles. So entries of a slow source
are delivered early, and the number of sorted pieces stays small."""


class Run:
    """One reading of one partition. It begins with its first batch and ends with its last.

    ``whole``: map every record, without differences. ``guard``: decides whether the run is held. ``groups``: makes one record
    of each group of records before the difference and the mapping. ``sorter`` is empty; it collects the entries of a large
    snapshot. ``hashes``: see `Difference`. ``prepared`` returns the result of a batch that was mapped before; else None.
    ``clock``: monotonic seconds. ``first_reject``: location and reason of the first rejected record. ``batch_rejection``: why
    all records of the last batch are rejected (they lack a field); else empty. ``sha256``: the hash of the file, if its
    source states it. ``store_seconds``: the time of writes to the mirror; ``map_seconds``: the remaining time of `take`.
    """

    def __init__(
        self,
        mirror: IntakeStore,
        mapping: Mapping,
        partition: Partition,
        state: PartitionState,
        *,
        whole: bool,
        contract: ContractCheck | None = None,
        guard: Guard | None = None,
        groups: GroupStage | None = None,
        sorter: EntrySorter,
        hashes: SpillFile,
        prepared: Callable[[Batch], PreparedBatch | None] = lambda _: None,
        clock: Callable[[], float],
    ) -> None:
        self._mirror = mirror
        self._prepared = prepared
        self._mapping = mapping
        self._partition = partition
        self._state = state
        # If a partition is not replayable, it uses no differences: it can't read a record again to take back an entry.
        self._whole = whole or state.snapshot is None or not partition.replayable
        self._guard = guard
        self._groups = groups
        self._sorter = sorter
        self._clock = clock
        self._began = clock()
        self._sorting_seconds = _SORTING_SECONDS
        self._stored = 0
        self._difference = Difference(None if self._whole else state.snapshot, hashes)
        self._id: int | None = None
        self._entries: list[pl.DataFrame] = []
        self._rejects: list[tuple[Reject, int | None]] = []
        self._records = self._total = 0
        self._resolves: list[str] = []
        self._silence = SilentRecords(mapping)
        self._partial = False
        self._amended = AmendedRecords()
        self._unread: list[pl.Series] = []
        self._names_all = True
        """Whether the keys of all rejected records are known; see `RejectedNames`."""
        self._last: Batch | None = None
        self._cursor: Cursor = {}
        user = groups.aggregation if groups is not None else mapping
        self._absent = AbsentFields(user, whole=partition.snapshot)
        self._contract = contract
        self.first_reject = self.batch_rejection = ""
        self.sha256 = ""
        self.store_seconds = self.map_seconds = 0.0

    @property
    def seconds(self) -> float:
        """The time since the run was created, including the time of its source."""
        return self._clock() - self._began

    def load_sections(self) -> dict[bytes, int]:
        """Return the sections that need not be read: by digest, the number of records. Call it before `take`."""
        return self._difference.load_sections()

    def take(self, batch: Batch) -> RunSummary | None:
        """Store a batch in the mirror; return the run's summary if it was the last batch."""
        began = self._clock() - self.store_seconds
        self.sha256 = batch.facts.get("file.sha256", "")
        summary = self._take(batch)
        self.map_seconds += self._clock() - self.store_seconds - began
        return summary

    def _take(self, batch: Batch) -> RunSummary | None:
        if self._partition.snapshot and not (batch.unchanged or batch.partial):
            self._difference.load()  # before the run begins: retries requested later are for the next run
        run = self._begin()
        if batch.unchanged:
            return self._mirror.finish_run(run, cursor=batch.cursor, seen=None, deletes="keep")
        batch = reject_unreadable(batch, self._groups.aggregation if self._groups is not None else self._mapping)
        absent = self._absent.add(batch)
        if self._contract is not None:
            batch = self._contract.apply(batch)
        if self._groups is None:
            return self._map(run, batch, read=batch.record_count, absent=absent)
        return self._take_groups(run, batch, self._groups)

    def _take_groups(self, run: int, batch: Batch, groups: GroupStage) -> RunSummary | None:
        """Add a batch to its groups, and map the groups after the last batch."""
        if not self._partition.snapshot:
            raise SourceBroken(
                "This source yields only new records, and the aggregates of a group need all records. Remove the setting group."
            )
        read = batch.records.height + len(batch.rejects)
        rejects = groups.add(batch)
        self._collect(batch, [(reject, None) for reject in rejects], read=read)
        self._names_all = self._names_all and not groups.lacks_group
        if len(self._rejects) >= _ENTRIES_IN_COMMIT:
            self._commit(run, batch)
        if not batch.last:
            return None
        summary = None
        self._absent = AbsentFields(self._mapping, whole=True)
        for grouped in groups.batches(batch):
            self._absent.add(grouped)
            summary = self._map(run, grouped, read=0)
        return summary

    def _map(self, run: int, batch: Batch, *, read: int, absent: AbsentField | None = None) -> RunSummary | None:
        """Compare, map and store a batch.

        ``read``: the number of records of the source that were not counted yet. ``absent``: a missing field, which causes the
        rejection of all records.
        """
        prepared = self._prepared(batch)
        hashes = self._mapping.row_hashes(batch.records, batch.facts) if prepared is None else prepared.hashes
        records, positions = batch.records, batch.positions
        self._partial = self._partial or batch.partial
        if self._partition.snapshot and not self._partial:
            is_new = self._difference.mask_new(hashes, batch.sections)
            if not is_new.any():
                records, positions, hashes = records.clear(), positions.clear(), hashes.clear()
            elif not is_new.all():
                records, positions, hashes = records.filter(is_new), positions.filter(is_new), hashes.filter(is_new)
        mapped = self._apply(batch, dataclasses.replace(batch, records=records, positions=positions), hashes, absent)
        entries = [mapped.entries]
        names = RejectedNames(self._mapping)
        if self._partition.snapshot and self._partition.deletes == "remove":
            entries += names.of_source(batch, are_groups=self._groups is not None)
            entries += names.of_mapping(records, positions, hashes, batch.facts, mapped.rejects)
            self._unread.extend(names.hashes)
        self._silence.add(records, batch, mapped)
        if batch.partial:
            rejected = () if names.is_complete else (*batch.rejects, *(reject for reject, _ in mapped.rejects))
            self._amended.add(batch, (one["key"] for one in entries), kept=(one.position for one in rejected))
        else:
            self._names_all = self._names_all and names.is_complete
        self._entries += [one for one in entries if one.height]
        self._collect(batch, [*((reject, None) for reject in batch.rejects), *mapped.rejects], read=read)
        collected = sum(entries.height for entries in self._entries) + len(self._rejects)
        # New entries of a snapshot can wait for its end; the cursor of an incremental partition moves with each batch.
        if collected >= _ENTRIES_IN_COMMIT or batch.last or not self._partition.snapshot:
            self._commit(run, batch)
        if not batch.last:
            return None
        if self._partial:
            return self._stored_by(
                lambda: self._mirror.finish_run(
                    run,
                    cursor=batch.cursor,
                    seen=None,
                    deletes=self._partition.deletes,
                    partial=True,
                    reasons=self._hold_reasons(),
                    amendment=self._amended.amendment(batch),
                )
            )
        seen = self._difference.seen() if self._partition.snapshot else None
        if seen is not None and self._unread:
            seen = Snapshot(hashes=seen.hashes.plus(self._unread), sections=seen.sections)
        deletes = self._partition.deletes if self._names_all else "defer"
        return self._stored_by(
            lambda: self._mirror.finish_run(
                run, cursor=batch.cursor, seen=seen, deletes=deletes, reasons=self._hold_reasons()
            )
        )

    def _apply(self, batch: Batch, new: Batch, hashes: pl.Series, absent: AbsentField | None) -> Mapped:
        """Map the ``new`` records of a batch, or use its prepared result. If a field is absent, reject all ``new`` records."""
        self.batch_rejection = ""
        if absent is None:
            prepared = self._prepared(batch)
            if prepared is not None and new.records is batch.records:
                mapped = prepared.mapped
            else:
                mapped = self._mapping.apply(new.records, new.positions, hashes, batch.facts)
            is_whole = new.records.height == batch.records.height
            absent = self._absent.add_children(mapped.child_fields, is_whole=is_whole, last=batch.last)
            if absent is None:
                return mapped
        self.batch_rejection = absent.sentence
        return self._mapping.reject_all(new.records, new.positions, hashes, absent)

    def fail(self, reason: str, *, broken: bool) -> None:
        """End an incomplete reading. ``broken``: reject the partition with the reason, even before its first batch."""
        if self._id is None and not broken:
            return
        run = self._begin()
        if broken and not self._absent.is_undecided:  # everything that was read before the failure stays
            if self._last is not None:
                self._commit(run, self._last)
            self._drain(run)
        reasons = (*self._hold_reasons(), *((reason,) if self._absent.is_undecided else ()))
        self._mirror.fail_run(run, redact_text(reason), broken=broken, reasons=reasons)

    def _hold_reasons(self) -> tuple[str, ...]:
        return self._contract.hold_reasons() if self._contract is not None and self._partition.snapshot else ()

    def _collect(self, batch: Batch, rejects: Sequence[tuple[Reject, int | None]], *, read: int) -> None:
        if rejects and not self.first_reject:
            self.first_reject = located_reason(rejects[0][0])
        self._rejects += rejects
        self._silence.gives_values = self._silence.gives_values or bool(rejects)
        self._records += read
        self._total += read
        self._resolves += batch.resolves
        self._last, self._cursor = batch, batch.cursor

    def _commit(self, run: int, batch: Batch) -> None:
        """Store the collected entries; the entries of a large snapshot are sorted first."""
        entries = pl.concat(self._entries) if self._entries else self._mapping.empty_entries(batch.positions.dtype)
        is_large = self._stored + entries.height >= _ENTRIES_UNSORTED and not (batch.last and not self._sorter.height)
        # While it is undecided whether a field is absent, no entries are stored, because the reading may have to be rejected.
        is_undecided = self._absent.is_undecided and not batch.last
        if (is_large or is_undecided) and self._partition.snapshot and not self._partial:
            if entries.height:
                self._sorter.add(entries)
            entries = entries.clear()
        else:
            self._drain(run)  # earlier entries first
        valueless = self._silence.take(self._total) if batch.last else 0
        self._stored_by(
            lambda: self._mirror.commit(
                run,
                entries=entries,
                records=self._records,
                rejects=self._rejects,
                cursor=batch.cursor,
                facts=self._with_notices(batch.facts),
                resolved=self._resolves,
                valueless=valueless,
            )
        )
        self._stored += entries.height
        self._entries, self._rejects, self._records, self._last = [], [], 0, None
        self._resolves = []
        if batch.last or (not is_undecided and self._clock() - self._began >= self._sorting_seconds):
            self._drain(run)

    def _drain(self, run: int) -> None:
        """Store the entries of the sorter."""
        if not self._sorter.height:
            return
        self._sorting_seconds = 2 * max(self._clock() - self._began, self._sorting_seconds)
        for entries in self._sorter.drain():
            self._stored_by(
                partial(self._mirror.commit, run, entries=entries, records=0, rejects=(), cursor=self._cursor, facts={})
            )
            self._stored += entries.height

    def _stored_by(self, store: Callable[[], T]) -> T:
        """Call a write to the mirror, and add its time."""
        began = self._clock()
        result = store()
        self.store_seconds += self._clock() - began
        return result

    def _with_notices(self, facts: MappingOf[str, str]) -> MappingOf[str, str]:
        """Return the facts, with the notices about missing values and accepted differences of the contract."""
        accepted = tuple(self._contract.notices.values()) if self._contract is not None else ()
        notices = [one for one in (facts.get(NOTICE, ""), self._silence.notice, *accepted) if one]
        return {**facts, NOTICE: " ".join(notices)} if notices else facts

    def _begin(self) -> int:
        if self._id is None:
            self._id = self._mirror.begin_run(
                self._state.id,
                snapshot=self._partition.snapshot,
                whole=self._whole,
                guard=self._guard,
                can_hold=self._contract is not None and self._contract.contract.can_hold,
            )
        return self._id


def checked_batches(reading: Iterator[Batch | RecordUnreadable]) -> Generator[Batch, None, None]:
    """Yield the batches of a connector's reading, with the unreadable records as their rejects.

    Raises:
        SourceUnavailable: the source is not reachable now.
        SourceBroken: the connector reported this, failed, or violated its contract.
    """
    batches = attach_rejects(reading)
    while True:
        note_progress()
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
                "The connector returned a batch with columns that are not text, or that have another length than its positions."
            )
        yield batch


_MOST = 1_000_000
"""Maximum number of positions, which bounds the memory. With more positions, a whole reading finds the removed records."""


class AmendedRecords:
    """Collects the positions of records, and the keys of their entries. Does nothing if positions are row numbers."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._positions: list[pl.Series] = []
        self._keys: list[pl.Series] = []
        self._count = 0

    def add(self, batch: Batch, keys: Iterable[pl.Series], kept: Iterable[Position]) -> None:
        """Add a batch and the keys of the entries of its records.

        ``kept``: positions of rejected records with unknown keys; entries from these positions are not removed.
        """
        if batch.positions.dtype != pl.String:
            return
        others = [str(reject.position) for reject in batch.rejects] + list(batch.removed or ())
        self._count += batch.positions.len() + len(others)
        self._kept += [str(record_position(position)) for position in kept]
        if self._count > _MOST:
            self._positions.clear()
            self._keys.clear()
            self._kept.clear()
            return
        self._positions += [batch.positions.alias("position"), pl.Series("position", others, dtype=pl.String)]
        self._keys += keys

    def amendment(self, last: Batch) -> Amendment | None:
        """Return the amendment of all batches; None if positions are row numbers. ``last``: the last batch."""
        if last.positions.dtype != pl.String:
            return None
        empty = pl.Series("position", [], dtype=pl.String)
        positions = pl.concat([empty, *self._positions]).unique() if self._count <= _MOST else None
        keys = pl.concat([empty.alias("key"), *self._keys]).unique()
        return Amendment(positions=positions, kept=tuple(self._kept), keys=keys, is_complete=last.removed is not None)
