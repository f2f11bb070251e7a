"""Maps retried rejections of incremental partitions from their stored text, because no reading reads the records again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from itertools import takewhile

import polars as pl

from ingestd.core.record import Position, Reject, record_position
from ingestd.mirror.port import RetriedRecord
from ingestd.mirror.sqlite.entries.entry_writer import Written
from ingestd.mirror.sqlite.entries.repeated_keys import RepeatedKeys
from ingestd.mirror.sqlite.rejections.rejected_rows import store_rejected_records
from ingestd.mirror.sqlite.runs.run_writer import RunState, RunWriter
from ingestd.mirror.sqlite.sql import SQL


class RetriedRecords:
    """Maps stored rejections, inside the transactions of its callers. ``now``: seconds since the epoch."""

    def __init__(self, writer: RunWriter, *, now: Callable[[], float]) -> None:
        self._writer = writer
        self._now = now

    def records(
        self, connection: sqlite3.Connection, partition: int, *, retries: int, limit: int
    ) -> list[RetriedRecord]:
        """Return retried rejections; see `IntakeStore.retried_records`. ``retries``: number of the last retry to include."""
        found = [
            RetriedRecord(
                id=identity,
                run=run,
                position=position,
                row_hash=row_hash,
                reason=reason,
                record=json.loads(record),
                facts=json.loads(facts),
                entry=(key, value, data_type) if subject == "conflict" else None,
            )
            for identity, run, position, row_hash, reason, record, facts, subject, key, value, data_type in (
                connection.execute(SQL["retried_stored"], (partition, retries, limit))
            )
        ]
        return list(takewhile(lambda one: _kind(one) == _kind(found[0]), found))

    def map(
        self,
        connection: sqlite3.Connection,
        partition: int,
        records: Sequence[RetriedRecord],
        *,
        entries: pl.DataFrame,
        rejects: Sequence[tuple[Reject, int | None]],
    ) -> tuple[RunState, Written | None]:
        """Replace rejections by the results of their mapping; see `IntakeStore.map_retried`. ``entries`` are sorted by key."""
        run = self._begin(connection, partition)
        signed = entries["row_hash"].cast(pl.Int64, wrap_numerical=True)
        known = {
            key: (at_run, position, value, data_type)
            for key, at_run, position, value, data_type in connection.execute(
                SQL["entries_written"], (json.dumps(entries["key"].unique().to_list()), run.sink, partition)
            )
        }
        wanted = entries.with_columns(signed.alias("row_hash"))
        unsure: dict[Position, str] = {}
        later: set[tuple[str, Position]] = set()
        for key, value, data_type, position in wanted.select("key", "value", "data_type", "position").iter_rows():
            if key not in known or known[key][2:] == (value, data_type):
                continue
            at_run, at = known[key][:2]
            if at_run > records[0].run or (at_run == records[0].run and _is_after(at, position)):
                later.add((key, position))
            elif at_run == records[0].run and not _is_after(position, at):
                unsure[position] = key
        kept = self._keep(connection, records, unsure)
        doubted = {record_position(position) for position in unsure}
        store_rejected_records(connection, self._writer.location(run), rejects)
        done = [one for one in records if one.id not in kept]
        mapped = {
            "hashes": json.dumps([one.row_hash for one in done if one.record]),
            "ids": json.dumps([one.id for one in done]),
            "partition": partition,
            "run": run.id,
        }
        connection.execute(SQL["rejected_drop_mapped"], mapped)
        connection.execute(SQL["rejected_drop_resolved"], mapped)
        chosen = [
            (key, position) not in later and record_position(position) not in doubted
            for key, position in wanted.select("key", "position").iter_rows()
        ]
        wanted = wanted.filter(pl.Series(chosen, dtype=pl.Boolean)).unique("key", keep="last", maintain_order=True)
        written = self._writer.write(connection, run, wanted) if wanted.height else None
        self._writer.count(
            connection, run, written, records=len(records), rejected=len(rejects), facts=records[0].facts
        )
        connection.execute(SQL["run_end"], (self._now(), "", run.id))
        return run, written

    def _begin(self, connection: sqlite3.Connection, partition: int) -> RunState:
        (run,) = connection.execute(SQL["run_begin"], (partition, self._now())).fetchone()
        pipeline, sink, *_ = connection.execute(SQL["partition_context"], (partition,)).fetchone()
        return RunState(
            id=run, partition=partition, pipeline=pipeline, sink=sink, snapshot=False, whole=True, staged=False,
            remapped=False, has_rejected=True, retries=0, repeated_keys=RepeatedKeys(partition),
        )  # fmt: skip

    def _keep(
        self, connection: sqlite3.Connection, records: Sequence[RetriedRecord], unsure: dict[Position, str]
    ) -> Collection[int]:
        """Keep the rejections that cannot be mapped, and store the reason; return their ids."""
        whole = {one.row_hash for one in records if one.record and one.is_readable}
        kept: dict[int, str] = {
            one.id: one.reason
            for one in records
            if not one.is_readable or (not one.record and one.entry is None and one.row_hash not in whole)
        }
        for one in records:
            at = next((at for at in unsure if record_position(at) == record_position(one.position)), None)
            if one.is_readable and at is not None:
                kept[one.id] = (
                    f"Another record of the same reading wrote the key '{unsure[at]}', and it is not known which record "
                    "is newer. Drop this record, or enter its value by hand."
                )
        for identity, reason in kept.items():
            connection.execute(SQL["rejected_keep"], (reason, self._now(), identity))
        return kept.keys()


def _kind(record: RetriedRecord) -> tuple[object, ...]:
    has_row = isinstance(record_position(record.position), int)
    return record.run, has_row, record.is_readable, record.entry is None


def _is_after(one: Position | None, other: Position | None) -> bool:
    first, second = (record_position(at) if at is not None else None for at in (one, other))
    return isinstance(first, int) and isinstance(second, int) and first > second
