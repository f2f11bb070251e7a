"""What can't become an entry, or can't be delivered, is kept here with its reason until it is fixed, retried or dropped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ingestd.core.record import Position, Reject
from ingestd.mirror.port import Parked
from ingestd.mirror.sqlite.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and when something was parked; ``at`` in seconds since the epoch."""

    partition: int
    run: int
    sink: int
    at: float


def park_records(connection: sqlite3.Connection, place: Place, rejects: Sequence[tuple[Reject, int | None]]) -> None:
    """Park records with their row hashes (None: the record could not be read); a record parked before is parked anew."""
    hashes = [_signed(row_hash) for _, row_hash in rejects if row_hash is not None]
    if hashes:
        connection.execute(SQL["rejected_of_row"], (place.partition, json.dumps(hashes)))
    for reject, row_hash in rejects:
        _add(
            connection,
            place,
            subject="record",
            reason=reject.reason,
            field=reject.field,
            position=reject.position,
            row_hash=_signed(row_hash) if row_hash is not None else None,
            record=reject.record,
        )


def park_partition(connection: sqlite3.Connection, place: Place, reason: str) -> None:
    """Park a partition of which nothing could be read."""
    _add(connection, place, subject="partition", reason=reason)


def park_conflicts(
    connection: sqlite3.Connection,
    place: Place,
    pipeline: str,
    conflicts: Sequence[tuple[str, str]],
    entries: pl.DataFrame,
) -> None:
    """Park entries that another pipeline writes; the sentence names both."""
    if not conflicts:
        return
    owners = dict(conflicts)
    connection.execute(SQL["rejected_keys"], (place.sink, json.dumps(list(owners))))
    for entry in entries.filter(pl.col("key").is_in(list(owners))).iter_rows(named=True):
        _add(
            connection,
            place,
            subject="conflict",
            reason=f"Pipelines '{owners[entry['key']]}' and '{pipeline}' both write the key '{entry['key']}' of this sink; "
            f"the value of '{owners[entry['key']]}' stays. Give one of them another key or sink.",
            key=entry["key"],
            value=entry["value"],
            data_type=entry["data_type"],
            position=entry["position"],
            row_hash=entry["row_hash"],
        )


def park_entries(
    connection: sqlite3.Connection,
    sink: int,
    at: float,
    parked: Mapping[str, Parked],
    origins: Sequence[tuple[object, ...]],
) -> None:
    """Park entries that the service refused. ``origins``: key, value, data_type, partition, run, row_hash, position."""
    connection.execute(SQL["rejected_keys"], (sink, json.dumps(list(parked))))
    for key, value, data_type, partition, run, row_hash, position in origins:
        refusal = parked[str(key)]
        connection.execute(
            SQL["rejected_add"],
            {
                "subject": "entry", "partition": partition, "run": run, "sink": sink, "key": key, "value": value,
                "data_type": data_type, "position": position, "row_hash": row_hash, "field": "", "reason": refusal.reason,
                "status": refusal.status, "record": "{}", "at": at,
            },
        )  # fmt: skip


def forget_vanished(connection: sqlite3.Connection, partition: int, run: int, standing: pl.Series) -> None:
    """Records parked by earlier runs that a whole reading (``standing``: its row hashes, Int64) no longer met are gone."""
    rows = connection.execute(SQL["rejected_rows"], (partition, run)).fetchall()
    if not rows:
        return
    parked = pl.DataFrame(rows, schema={"id": pl.Int64, "row_hash": pl.Int64}, orient="row")
    gone = parked.filter(~pl.col("row_hash").is_in(standing.implode()).fill_null(value=False))
    connection.execute(SQL["rejected_drop"], (json.dumps(gone["id"].to_list()),))


def _add(
    connection: sqlite3.Connection,
    place: Place,
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
) -> None:
    row = {
        "subject": subject, "partition": place.partition, "run": place.run, "sink": place.sink, "key": key, "value": value,
        "data_type": data_type, "position": position, "row_hash": row_hash, "field": field, "reason": reason, "status": None,
        "record": json.dumps(dict(record or {}), ensure_ascii=False), "at": place.at,
    }  # fmt: skip
    connection.execute(SQL["rejected_add"], row)


def _signed(row_hash: int) -> int:
    return row_hash - (1 << 64) if row_hash >= 1 << 63 else row_hash
