"""Rows of rejections: selected, written, replaced and deleted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from ingestd.core.normal_form import nfc
from ingestd.core.phrases import clipped
from ingestd.core.record import Position, Reject
from ingestd.mirror.port import ColumnsOf, RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.repeated_keys import describe_location
from ingestd.mirror.sqlite.entries.shared_keys import conflict_sentence
from ingestd.mirror.sqlite.sql import SQL


class RejectionLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Location and time of a rejection; ``at`` in seconds since the epoch."""

    partition: int
    run: int
    sink: int
    at: float


class _Past(msgspec.Struct, frozen=True, kw_only=True):
    """The earlier state of a repeated rejection: its number, the time of the first rejection, and the count."""

    id: int | None
    at: float
    times: int


def store_rejected_records(
    connection: sqlite3.Connection, location: RejectionLocation, rejects: Sequence[tuple[Reject, int | None]]
) -> None:
    """Store rejected records with their row hashes (None: not readable). A repeated rejection keeps its number."""
    before = _before(connection, location, rejects)
    for reject, row_hash in rejects:
        signed = _signed(row_hash) if row_hash is not None else None
        known = before.get((signed, reject.position)) or before.get((signed, None)) or []
        _add(
            connection,
            location,
            subject="record",
            reason=reject.reason,
            field=reject.field,
            position=reject.position,
            row_hash=signed,
            record=reject.record,
            past=known.pop() if known else None,
        )


def _before(
    connection: sqlite3.Connection, location: RejectionLocation, rejects: Sequence[tuple[Reject, int | None]]
) -> dict[tuple[int | None, Position | None], list[_Past]]:
    """Remove and return the earlier rejections of these records.

    They are found by row hash and position. If the record has moved, the row hash alone decides; without a hash, the position.
    """
    hashes = [_signed(row_hash) for _, row_hash in rejects if row_hash is not None]
    positions = [reject.position for reject, row_hash in rejects if row_hash is None]
    rows: list[tuple[int, int | None, Position, float, int]] = []
    if hashes:
        rows += connection.execute(SQL["rejected_before"], (location.partition, json.dumps(hashes)))
    if positions:
        rows += connection.execute(
            SQL["rejected_unread_before"], (location.partition, location.run, json.dumps(positions))
        )
    if rows:
        connection.execute(SQL["rejected_drop"], (json.dumps([row[0] for row in rows]),))
    unmoved = {(_signed(row_hash), reject.position) for reject, row_hash in rejects if row_hash is not None}
    before: dict[tuple[int | None, Position | None], list[_Past]] = {}
    for identity, row_hash, position, at, times in rows:
        same = row_hash is None or (row_hash, position) in unmoved
        known = before.setdefault((row_hash, position if same else None), [])
        known.append(_Past(id=identity, at=at, times=times))
    return before


def store_rejected_partition(connection: sqlite3.Connection, location: RejectionLocation, reason: str) -> None:
    """Store the rejection of an unreadable partition. A repeated rejection keeps its number."""
    rows = connection.execute(SQL["rejected_partition"], (location.partition,)).fetchall()
    past = [_Past(id=identity, at=at, times=times) for identity, at, times in rows]
    _add(connection, location, subject="partition", reason=reason, past=past[0] if past else None)


def store_conflicts(
    connection: sqlite3.Connection,
    location: RejectionLocation,
    pipeline: str,
    conflicts: Sequence[tuple[str, str]],
    entries: pl.DataFrame,
) -> None:
    """Store rejections of entries that another pipeline writes; the sentence names both pipelines and locations."""
    if not conflicts:
        return
    owners = dict(conflicts)
    rows = connection.execute(
        SQL["rejected_conflicts_before"], (location.sink, location.partition, json.dumps(list(owners)))
    ).fetchall()
    before = {key: _Past(id=identity, at=at, times=times) for key, identity, at, times in rows}
    keys = json.dumps(list(owners))
    at_owner = {key: rest for key, *rest in connection.execute(SQL["entry_locations"], (keys, location.sink))}
    partitions = json.dumps([location.partition, *{partition for partition, _ in at_owner.values()}])
    names = {row[0]: row[3] for row in connection.execute(SQL["partition_owners"], (partitions,))}
    for entry in entries.filter(pl.col("key").is_in(list(owners))).iter_rows(named=True):
        owner, (partition, position) = owners[entry["key"]], at_owner[entry["key"]]
        theirs = describe_location(names[partition], position)
        ours = describe_location(names[location.partition], entry["position"])
        _add(
            connection,
            location,
            subject="conflict",
            reason=conflict_sentence(entry["key"], (owner, theirs), (pipeline, ours)),
            key=entry["key"],
            value=entry["value"],
            data_type=entry["data_type"],
            position=entry["position"],
            row_hash=entry["row_hash"],
            past=before.get(entry["key"]),
        )


def store_rejected_entries(
    connection: sqlite3.Connection,
    sink: int,
    at: float,
    rejected: Mapping[str, RejectedEntry],
    origins: Sequence[tuple[object, ...]],
    *,
    columns_of: ColumnsOf,
) -> None:
    """Store rejections of entries, and the refusals of the service.

    ``origins``: key, value, data_type, partition, run, row_hash, position, removed.
    """
    partitions = json.dumps(sorted({origin[3] for origin in origins}, key=str))
    pipelines = {row[0]: row[1] for row in connection.execute(SQL["partition_owners"], (partitions,))}
    connection.execute(SQL["rejected_entries_before"], (sink, json.dumps(list(rejected))))
    for key, value, data_type, partition, run, row_hash, position, removed in origins:
        refusal = rejected[str(key)]
        noted = {
            "sink": sink, "key": key, "value": value, "data_type": data_type, "at": at, "operation": refusal.operation,
            "status": refusal.status, "request_id": refusal.request_id, "words": refusal.reason,
        }  # fmt: skip
        connection.execute(SQL["refusal_others"], noted)
        connection.execute(SQL["refusal_add"], noted)
        connection.execute(SQL["refusal_prune"], noted)
        first, times = connection.execute(SQL["refusal_past"], (sink, key)).fetchone()
        columns = columns_of(pipelines.get(partition, ""), str(key), refusal.member)
        connection.execute(
            SQL["rejected_add"],
            {
                "id": None, "subject": "entry", "partition": partition, "run": run, "sink": sink, "key": key,
                "value": value, "data_type": data_type, "removed": removed, "position": position, "row_hash": row_hash,
                "field": ", ".join(columns), "reason": refusal.reason, "status": refusal.status, "record": "{}", "at": first,
                "last_at": at, "times": times,
            },
        )  # fmt: skip


def find_vanished(connection: sqlite3.Connection, partition: int, run: int, seen: RowHashes) -> list[int]:
    """Return the sorted ids of rejections of earlier runs if their records are not in a whole reading.

    ``seen``: the row hashes of the reading.
    """
    rows = connection.execute(SQL["rejected_rows"], (partition, run)).fetchall()
    known = pl.DataFrame(rows, schema={"id": pl.Int64, "row_hash": pl.Int64}, orient="row")
    present = seen.find(known["row_hash"].drop_nulls()).reinterpret(signed=True)
    return known.filter(~pl.col("row_hash").is_in(present.implode()).fill_null(value=False))["id"].sort().to_list()


def drop_read_again(
    connection: sqlite3.Connection, location: RejectionLocation, retries: int, hashes: Sequence[int]
) -> None:
    """Delete retried rejections of earlier runs that an incremental reading has read again; ``hashes``: signed row hashes."""
    found = {"partition": location.partition, "run": location.run, "retries": retries, "hashes": json.dumps(hashes)}
    connection.execute(SQL["rejected_read_again"], found)


def find_corrected(connection: sqlite3.Connection, partition: int, run: int, retries: int, *, whole: bool) -> list[int]:
    """Return the sorted ids of rejections of earlier runs that this run mapped successfully.

    ``whole``: the run has mapped every record. ``retries``: number of retries requested before the run began; later retries
    are for the next run.
    """
    parameters = {"partition": partition, "run": run, "retries": retries}
    rows = connection.execute(SQL["rejected_corrected" if whole else "rejected_retried_corrected"], parameters)
    return sorted(identity for (identity,) in rows)


def _add(
    connection: sqlite3.Connection,
    location: RejectionLocation,
    *,
    subject: str,
    reason: str,
    field: str = "",
    key: str | None = None,
    value: str | None = None,
    data_type: str | None = None,
    position: Position | None = None,
    row_hash: int | None = None,
    record: Mapping[str, str | None] | None = None,
    past: _Past | None = None,
) -> None:
    since = past or _Past(id=None, at=location.at, times=0)
    row = {
        "id": since.id, "subject": subject, "partition": location.partition, "run": location.run,
        "sink": location.sink, "key": key, "value": value, "data_type": data_type, "removed": 0, "position": position,
        "row_hash": row_hash, "field": field, "reason": clipped(reason), "status": None,
        "record": json.dumps(dict(record or {}), ensure_ascii=False), "at": since.at,
        "last_at": location.at, "times": since.times + 1,
    }  # fmt: skip
    connection.execute(SQL["rejected_add"], row)


def _signed(row_hash: int) -> int:
    return row_hash - (1 << 64) if row_hash >= 1 << 63 else row_hash


def select_rejected(selection: Selection, *, after: int = 0, limit: int = -1) -> tuple[str, dict[str, object]]:
    """Return the statement for the ids of a selection, and its parameters; ``limit`` -1: no limit."""
    parameters: dict[str, object] = {
        "after": after, "limit": limit, "pipeline": selection.pipeline, "reason": selection.reason,
        "file": selection.file, "key": nfc(selection.key),
    }  # fmt: skip
    if not selection.ids:
        return SQL["rejected_selected"], parameters
    return SQL["rejected_selected_among"], parameters | {"ids": json.dumps(selection.ids)}
