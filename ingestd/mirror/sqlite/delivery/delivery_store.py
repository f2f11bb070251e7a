"""The store of the delivery: claims of pending entries, and acknowledgement, release or rejection of claimed entries."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.errors import MirrorFull
from ingestd.mirror.port import (
    Claim,
    ColumnsOf,
    DeliveryAttempt,
    HeldRun,
    LaneBlocker,
    LaneState,
    RejectedEntry,
)
from ingestd.mirror.sqlite.delivery.claim_part import claim_part
from ingestd.mirror.sqlite.delivery.deferred import DeferredAcknowledgement, DeferredAcknowledgements
from ingestd.mirror.sqlite.entries.adoption import adopt_entries, forget_entries
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.ownership import doubt_other_addresses
from ingestd.mirror.sqlite.entries.segments import acknowledge_entries, keys_of
from ingestd.mirror.sqlite.rejections.rejected_rows import store_rejected_entries
from ingestd.mirror.sqlite.runs.first_readings import FirstReadings, note_found
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile
from ingestd.mirror.sqlite.state_file.sequence import SequenceFile
from ingestd.mirror.sqlite.threads import in_thread, threaded

_PAGE = 10_000
"""Maximum number of entries adopted in one transaction; other writers can run between two transactions."""


class DeliveryStore:
    """The delivery's interface of the mirror. Async; a method returns when its transaction is durable.

    Claims have their own connection and thread, so a large write does not delay them. ``claimed_segments`` is in memory only:
    after a crash, claimed entries are pending again. ``watched`` contains the sinks of running drift checks; acknowledged
    removals in these sinks are recorded. ``announce`` is called with the id of a lost sink; its entries are pending.

    On a full disk, acknowledgements wait in memory. When they have been written, ``on_written`` is called from a thread. While
    the disk is full, attempts and blockers are not stored, and the other methods raise `MirrorFull`. ``columns_of`` returns the
    source columns of rejected entries. ``first_readings`` compares readings with a sink's entries at its first adoption.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        now: Callable[[], float],
        claimed_segments: ClaimedSegments,
        watched: set[int],
        sequence: SequenceFile,
        first_readings: FirstReadings,
        announce: Callable[[int], None],
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._state = state
        self._now = now
        self._claimed = claimed_segments
        self._watched = watched
        self._sequence = sequence
        self._first_readings = first_readings
        self._announce = announce
        self.columns_of: ColumnsOf = lambda *_: ()
        self._claiming = threading.Lock()
        self._reader = state.reader()
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="mirror-claims")
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="mirror-acknowledge")
        self._deferred = DeferredAcknowledgements(self._writes, on_written=on_written)

    async def lanes(self) -> list[LaneState]:
        """Return all sinks."""
        return await in_thread(self._reads, self._lanes)

    async def lane(self, sink: int) -> LaneState | None:
        """Return one sink; None if the mirror does not have it."""
        return next(iter(await in_thread(self._reads, self._lanes, sink)), None)

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        """Release a claim: its unacknowledged entries are pending again. After `acknowledge` this has no effect."""
        segments = [part.segment for part in claim.parts]
        try:
            if attempt:
                await self.note_attempt(claim.sink, attempt)
        finally:
            if self._deferred.holds(segments):
                # Delivered entries of the claim must not be claimed again before they are acknowledged.
                release = DeferredAcknowledgement(write=lambda: self._release(segments), segments=segments)
                await in_thread(self._writes, self._deferred.write_or_defer, release)
            else:
                self._release(segments)

    def close(self) -> None:
        """Finish the running work and end the threads. Acknowledgements are lost if the disk is full; see `deferred`."""
        self._deferred.stop()
        with suppress(MirrorFull):
            self._writes.submit(self._deferred.write_all).result()
        self._writes.shutdown()
        self._reads.shutdown()
        self._reader.close()

    def _lanes(self, sink: int | None = None) -> list[LaneState]:
        return [
            LaneState(
                id=identity,
                address=SinkAddress(workspace=workspace, by=by, name=name),
                workspace_id=workspace_id,
                sink_id=sink_id,
                adopted=bool(adopted),
                pending=pending,
                claimed_before=self._sequence.claimed_before,
            )
            for identity, workspace, by, name, workspace_id, sink_id, adopted, pending in self._reader.execute(
                *((SQL["lanes"],) if sink is None else (SQL["lane"], (sink,)))
            )
        ]

    @threaded("_reads")
    def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        """Claim the oldest pending entries, up to the limits (at least one entry); None if no entry can be claimed now.

        Entries of paused pipelines are not claimed.
        """
        chosen, is_complete = self._choose(sink, max_items, max_bytes)
        self._sequence.hand_out(chosen)
        parts = []
        # Bodies are read after the segments are marked as claimed, so that later changes wait for this claim.
        for segment, oldest in chosen.items():
            part = claim_part(self._reader, sink, segment, max_items, max_bytes, oldest=oldest)
            if part is None:
                self._claimed.release([segment])
            else:
                parts.append(part)
        is_complete = is_complete and len(parts) == len(chosen) and all(part.whole for part in parts)
        return Claim(sink=sink, parts=tuple(parts), is_complete=is_complete) if parts else None

    def _choose(self, sink: int, max_items: int, max_bytes: int) -> tuple[dict[int, int], bool]:
        """Claim segments. Return each with its `ClaimPart.oldest`, and whether the sink has no other pending segment."""
        chosen: dict[int, int] = {}
        is_complete = True
        items, size, after = 0, 2, 0
        with self._claiming:
            # Segments of this claim do not block each other: superseded items are left out of the bodies.
            elsewhere = frozenset(self._claimed)
            while rows := self._reader.execute(SQL["segments_pending"], (sink, after)).fetchall():
                for segment, live, length, over in rows:
                    after = segment
                    older = json.loads(over)
                    if segment in elsewhere or not elsewhere.isdisjoint(older):
                        is_complete = False
                        continue
                    if chosen and (items + live > max_items or size + length > max_bytes):
                        return chosen, False
                    if not self._claimed.claim(segment):
                        is_complete = False
                        continue  # a batch takes entries from the segment; its end announces the sink
                    chosen[segment] = min((segment, *older))
                    items, size = items + live, size + length
        return chosen, is_complete

    def _release(self, segments: Iterable[int]) -> None:
        with self._claiming:
            self._claimed.release(segments)

    @threaded("_writes")
    def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> Sequence[HeldRun]:
        """Store the service's ids of a sink.

        At the first adoption of the sink, return the readings that a guard holds because of the entries in the service.
        """
        self._deferred.write_all()
        with self._state.reading() as reader:
            is_first = reader.execute(SQL["sink_adoption"], (sink,)).fetchone()[1] is None
        held: Sequence[HeldRun] = ()
        with ExitStack() as compares:
            compared = None
            if adopted and is_first:
                compares.enter_context(self._first_readings.none_ending())
                with self._state.reading() as reader:
                    compared = self._first_readings.measure(reader, sink)
            with self._state.writing() as connection:
                earlier = self._sequence.is_earlier(sink_id)
                was_adopted = connection.execute(SQL["sink_adoption"], (sink,)).fetchone()[0]
                connection.execute(SQL["sink_remember"], (workspace_id, sink_id, int(adopted), sink))
                if adopted and is_first:
                    held = self._first_readings.hold(connection, sink, compared)
                if adopted and not was_adopted:
                    # Only a complete pass after the adoption shows which entries the sources explain.
                    connection.execute(SQL["sink_adopted"], {"sink": sink, "at": self._now(), "earlier": int(earlier)})
                    connection.execute(SQL["pipelines_unread_of_sink"], (sink,))
                    doubt_other_addresses(connection, sink, at=self._now())
        if is_first:
            self._forget_found(sink)
        if adopted:
            self._sequence.add_sink(sink_id)
        return held

    def _forget_found(self, sink: int) -> None:
        """Delete the entries that `note_found` has stored: they were compared, or an interrupted adoption has left them."""
        deleted = _PAGE
        while deleted == _PAGE:
            with self._state.writing() as connection:
                deleted = connection.execute(SQL["found_clear"], {"found": -sink, "count": _PAGE}).rowcount

    @threaded("_writes")
    def other_address(self, sink: int, sink_id: str) -> SinkAddress | None:
        """Return another address of the service's sink ``sink_id`` under which active pipelines write it, before this sink."""
        with self._state.reading() as reader:
            row = reader.execute(SQL["sink_rival"], {"sink": sink, "sink_id": sink_id}).fetchone()
        return SinkAddress(workspace=row[0], by=row[1], name=row[2]) if row is not None else None

    @threaded("_writes")
    def forget_sink(self, sink: int, *, lost: str = "") -> bool:
        """Handle the loss of a sink in the service: make all its desired entries pending again, as creates.

        ``lost``: the service's id of the lost sink. If the mirror has another id for the sink, nothing changes and the result
        is False.
        """
        self._deferred.write_all()
        with self._state.writing() as connection:
            (remembered,) = connection.execute(SQL["sink_remembered"], (sink,)).fetchone()
            if lost and remembered != lost:
                return False
            self._watched.discard(sink)
            forget_entries(connection, sink)
            connection.execute(SQL["sink_remember"], ("", "", 0, sink))
        self._announce(sink)
        return True

    @threaded("_writes")
    def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        """Adopt the service's entries (``key``, ``value`` or null, ``data_type``). Return the number of acknowledged entries.

        A pending entry with an equal value and type is acknowledged without a request. A pending entry that differs becomes an
        update. Keys that no source has named are stored as delivered, with the service's values. Several calls may pass the
        entries in chunks.
        """
        self._deferred.write_all()
        acknowledged = 0
        for page in entries.iter_slices(_PAGE):
            with self._state.writing() as connection:
                if connection.execute(SQL["sink_adoption"], (sink,)).fetchone()[1] is None:
                    note_found(connection, sink, page)
                acknowledged += adopt_entries(connection, sink, page, claimed_segments=self._claimed, at=self._now())
        return acknowledged

    @threaded("_writes")
    def acknowledge(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        """Acknowledge the whole claim as delivered."""
        # The parts have no bodies, because the acknowledgement may have to wait in memory.
        parts = [
            _Delivered(
                segment=part.segment,
                whole=part.whole,
                keys=keys_of(part.body) if part.kind == "delete" or not part.whole else (),
            )
            for part in claim.parts
        ]
        segments, at = [part.segment for part in parts], self._now()

        def write() -> None:
            with self._state.writing() as connection:
                _note_delivered(connection, segments, at, attempt)
                for part in parts:
                    if not part.whole:
                        self._acknowledge_keys(connection, claim_sink, [part.segment], part.keys)
                        continue
                    if part.keys:
                        keys = json.dumps(part.keys)
                        if claim_sink in self._watched:
                            connection.execute(SQL["gone_part"], (claim_sink, keys))
                        connection.execute(SQL["entries_delete_removed"], (claim_sink, part.segment, keys))
                    connection.execute(SQL["segment_drop"], (part.segment,))
                connection.execute(SQL["blocker_clear"], (claim_sink,))
                self._add_attempt(connection, claim_sink, attempt)
            self._release(segments)

        claim_sink, count = claim.sink, sum(len(part.keys) for part in parts)
        self._write_in_order(DeferredAcknowledgement(write=write, segments=segments, keys=count))

    @threaded("_writes")
    def acknowledge_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        rejected: Sequence[RejectedEntry] = (),
        attempt: DeliveryAttempt | None = None,
    ) -> None:
        """Acknowledge some keys of the claim as delivered or rejected. The other keys remain claimed until `release`."""
        sink, segments = claim.sink, [part.segment for part in claim.parts]
        rejections = {entry.key: entry for entry in rejected}
        keys, at = [*delivered, *rejections], self._now()

        def write() -> None:
            with self._state.writing() as connection:
                if delivered:
                    _note_delivered(connection, segments, at, attempt)
                if rejections:
                    origins = connection.execute(
                        SQL["entries_origin"], (sink, json.dumps(list(rejections)), json.dumps(segments))
                    ).fetchall()
                    store_rejected_entries(
                        connection, sink, self._now(), rejections, origins, columns_of=self.columns_of
                    )
                self._acknowledge_keys(connection, sink, segments, keys)
                connection.execute(SQL["blocker_clear"], (sink,))
                self._add_attempt(connection, sink, attempt)

        self._write_in_order(DeferredAcknowledgement(write=write, segments=segments, keys=len(keys)))

    def _write_in_order(self, acknowledgement: DeferredAcknowledgement) -> None:
        try:
            self._deferred.write_or_defer(acknowledgement)
        except BaseException:
            # Entries that could not be acknowledged are pending again and are sent again.
            self._release(acknowledgement.segments)
            raise

    def _acknowledge_keys(
        self, connection: sqlite3.Connection, sink: int, segments: Sequence[int], keys: Sequence[str]
    ) -> None:
        """Acknowledge entries of some segments, and delete the rows of removals."""
        acknowledge_entries(connection, sink, keys, segments)
        row = (sink, json.dumps(list(keys)))
        if sink in self._watched:
            connection.execute(SQL["gone_acknowledged"], row)
        connection.execute(SQL["entries_delete_acknowledged"], row)

    @threaded("_writes")
    def note_blocker(self, sink: int, blocker: LaneBlocker | None) -> None:
        """Store the sink's blocker; None deletes it. The acknowledgement of an entry deletes the blocker, too."""
        with suppress(MirrorFull), self._state.writing() as connection:
            if blocker is None:
                connection.execute(SQL["blocker_clear"], (sink,))
            else:
                row = (sink, blocker.status, blocker.sentence, blocker.since, blocker.until)
                connection.execute(SQL["blocker_note"], row)

    @threaded("_writes")
    def note_attempt(self, sink: int, attempt: DeliveryAttempt) -> None:
        """Store an attempt; only the newest attempts are kept."""
        with suppress(MirrorFull), self._state.writing() as connection:
            self._add_attempt(connection, sink, attempt)

    def _add_attempt(self, connection: sqlite3.Connection, sink: int, attempt: DeliveryAttempt | None) -> None:
        if attempt is None:
            return
        row = (sink, self._now(), *msgspec.structs.astuple(attempt))
        connection.execute(SQL["attempt_add"], row)
        connection.execute(SQL["attempt_prune"])


class _Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a claim without its body. ``keys``: set only if the part has removals or was cut by the claim's limits."""

    segment: int
    whole: bool
    keys: Sequence[str]


def _note_delivered(
    connection: sqlite3.Connection, segments: Sequence[int], at: float, attempt: DeliveryAttempt | None
) -> None:
    operation, status = (attempt.operation, attempt.status) if attempt is not None else ("", None)
    connection.execute(SQL["delivered_add"], (at, operation, status, json.dumps(list(segments))))
