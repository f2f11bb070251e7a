"""Opens partitions: creates their rows, and returns the state that their next reading needs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now
from ingestd.core.record import Cursor, Partition
from ingestd.mirror.port import PartitionState, Snapshot
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.moved_entries import leave_unknown_sink
from ingestd.mirror.sqlite.entries.snapshots import load_sections, load_snapshot
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.runs.held_runs import hold_of
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

_Row: TypeAlias = tuple[Any, ...]


class PartitionOpener:
    """Opens partitions. Thread-safe. ``opened``: see `IntakeStore`.

    ``announce`` is called with the id of a sink that gets pending entries. ``retries``: by partition, the number of requested
    retries that its next reading covers.
    """

    def __init__(
        self,
        state: StateFile,
        opened: set[int],
        *,
        now: Now,
        claimed_segments: ClaimedSegments,
        announce: Callable[[int], None],
    ) -> None:
        self._state = state
        self._now = now
        self._claimed = claimed_segments
        self._announce = announce
        self._opened = opened
        self.retries: dict[int, int] = {}

    def known_cursor(self, pipeline: str, partition: str, sink: SinkAddress, digest: str) -> Cursor | None:
        """Return the cursor of the `PartitionState` that `open` would return, without writing to the state file."""
        of_sink = (sink.workspace, sink.by, sink.name)
        with self._state.writing() as connection:
            row = connection.execute(SQL["partition_cursor"], (pipeline, partition, digest, *of_sink)).fetchone()
        return json.loads(row[0]) if row is not None and row[0] is not None else None

    def open(self, pipeline: str, partition: Partition, sink: SinkAddress, digest: str) -> PartitionState:
        """Return the state of a partition for the mapping ``digest``; create a new partition, and store its kind.

        If the mapping or sink changes, a partition that is not replayable keeps its cursor.
        """
        address, present = (sink.workspace, sink.by, sink.name), _kind_of(partition)
        has_moved = False
        with self._state.writing() as connection:
            (sink_id,) = _get_or_create(connection, "sink_id", address, "sink_ensure", address)
            pipeline_id, changes = _get_or_create(
                connection, "pipeline_get", (pipeline,), "pipeline_ensure", (pipeline,)
            )
            row = _get_or_create(
                connection,
                "partition_get",
                (pipeline_id, partition.name),
                "partition_ensure",
                (pipeline_id, sink_id, partition.name, digest, self._now(), *present),
            )
            identity, at_sink, known_digest, cursor, valid_through, repeats, awaiting, retries, gone, retired, *kind = (
                row
            )
            if kind != present:
                connection.execute(SQL["partition_set_kind"], (*present, identity))
            if gone is not None:
                connection.execute(SQL["partition_is_back"], (identity,))
            # A reading from this cursor covers the retries that were requested until now.
            self.retries[identity] = retries
            if (at_sink, known_digest) != (sink_id, digest):
                restarted = {"sink": sink_id, "digest": digest, "partition": identity}
                connection.execute(SQL["partition_restart"], restarted)
                connection.execute(SQL["also_named_elsewhere"], (identity, sink_id))
                connection.execute(SQL["snapshot_clear"], (identity,))
                cursor, valid_through, repeats = None if partition.replayable else cursor, -1, 0
            if at_sink != sink_id:
                target = WriteTarget(
                    connection=connection,
                    sink=sink_id,
                    partition=identity,
                    run=0,
                    claimed=self._claimed,
                    at=self._now(),
                )
                has_moved = leave_unknown_sink(target, at_sink, pipeline=pipeline, replayable=partition.replayable)
            if retired:
                connection.execute(SQL["partition_in_use"], (identity,))
            current = valid_through == changes
            known = hold_of(connection, identity)
            rejected = known is not None and connection.execute(SQL["partition_is_rejected"], (identity,)).fetchone()[0]
        if has_moved:
            self._announce(sink_id)
        # If a write of an approved run was interrupted, the next reading writes the remaining entries, so it is not withheld.
        if known is not None and (known.state == "approved" or not known.same_mapping or known.retries != retries):
            known = None
        if partition.replayable:
            # A partition that is not replayable never repeats a record, so it can't confirm a value.
            self._opened.add(identity)
        token = json.loads(cursor) if cursor is not None else None
        return PartitionState(
            id=identity,
            name=partition.name,
            cursor=token,
            current=current,
            snapshot=partial(self._snapshot, identity) if current and not repeats else None,
            repeats=bool(repeats),
            awaiting=token if awaiting else None,
            withheld=known.cursor if known is not None else None,
            after_rollback=known is not None and known.rolled_back,
            is_rejected=bool(rejected),
        )

    def _snapshot(self, partition: int) -> Snapshot:
        with self._state.writing() as connection:
            # A comparison with these hashes covers the retries that were requested until now.
            self.retries[partition] = connection.execute(SQL["partition_retries"], (partition,)).fetchone()[0]
            return Snapshot(
                hashes=RowHashes.of(load_snapshot(connection, partition)),
                sections=load_sections(connection, partition),
            )


def _kind_of(partition: Partition) -> list[int | str]:
    return [int(partition.snapshot), partition.deletes, int(partition.small), int(partition.replayable)]


def _get_or_create(connection: sqlite3.Connection, select: str, key: _Row, insert: str, row: _Row) -> _Row:
    """Return the row that ``select`` finds; insert it if it is missing."""
    found: _Row | None = connection.execute(SQL[select], key).fetchone()
    if found is None:
        connection.execute(SQL[insert], row)
        found = connection.execute(SQL[select], key).fetchone()
        if found is None:
            raise LookupError(f"{insert} did not insert the row of {select}")
    return found
