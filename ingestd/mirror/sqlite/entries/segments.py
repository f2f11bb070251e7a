"""Segments of pending entries. A segment has the encoded entries of one sink and one kind, for at most one request.

An entry is pending while its segment exists, so one statement acknowledges a whole segment. A changed entry moves to a new
segment and decrements ``live`` of the old one. A segment without live entries is deleted, so the backlog never exceeds the
number of keys.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import polars as pl

from ingestd.core.record import row_numbers
from ingestd.mirror.port import Kind
from ingestd.mirror.sqlite.sql import SQL
from ingestd.wire.origin import decode_row_steps, encode_row_steps

ITEMS = 5000
"""Maximum number of entries in one segment: the default limit of a bulk request (contract M3)."""

BODY_BYTES = 4 << 20
"""Encoded size above which a segment is split. It is well below the contract's 16 MiB, so that a response is fast."""


def encode(entries: pl.DataFrame, kind: Kind) -> bytes:
    """Return a JSON array of items for the request, from columns ``key``, ``value``, ``data_type``."""
    # Not with polars expressions: their evaluation takes longer than the encoding of a small file's entries.
    if kind == "delete":
        members = [pl.Series("delete", [True]).new_from_index(0, entries.height)]
    else:
        members = [entries["value"], entries["data_type"].alias("dataType")]
    return json_rows(pl.DataFrame([entries["key"], *members])).encode()


def queue(
    connection: sqlite3.Connection,
    *,
    sink: int,
    partition: int,
    kind: Kind,
    entries: pl.DataFrame,
    over: Mapping[int, Collection[int]],
    run: int,
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Create segments of ``entries``; yield each new segment's id with its slice.

    ``run``: the run that gave the values, from the record at each ``position``; 0: there is no run. ``entries`` may have a
    column ``segment`` (Int64): the older segment that the entry leaves; null if the entry was not pending. ``over``: for each
    older segment, the segments that it waits for.
    """
    for piece, body in _cut(entries, kind):
        left = sorted(piece["segment"].drop_nulls().unique().to_list()) if "segment" in piece.columns else []
        waits = sorted({*left, *(older for segment in left for older in over.get(segment, ()))})
        steps = encode_row_steps(row_numbers(piece["position"]))
        row = (sink, partition, kind, piece.height, piece.height, len(body), json.dumps(waits), body, run, steps)
        yield connection.execute(SQL["segment_add"], row).fetchone()[0], piece


def leave(connection: sqlite3.Connection, lost: Mapping[int, int]) -> None:
    """Decrement ``live`` of older segments; ``lost``: number of entries that moved to other segments, by segment."""
    for segment, count in lost.items():
        row = connection.execute(SQL["segment_lose"], (count, segment)).fetchone()
        if row is None:
            continue
        if row[0] <= 0:
            connection.execute(SQL["segment_drop"], (segment,))
        else:
            _shrink(connection, segment)


def acknowledge_entries(
    connection: sqlite3.Connection, sink: int, keys: Sequence[str], segments: Sequence[int]
) -> None:
    """Acknowledge the entries with these ``keys`` that are still in one of ``segments``."""
    row = (sink, json.dumps(list(keys)), json.dumps(list(segments)))
    leave(
        connection,
        Counter(segment for (segment,) in connection.execute(SQL["entries_acknowledge"], row).fetchall()),
    )


def live_body(
    connection: sqlite3.Connection, sink: int, segment: int, body: bytes, steps: bytes
) -> tuple[int, bytes, bytes]:
    """Return the number of live items of a segment, and the body and the row steps of only the live items."""
    items = msgspec.json.decode(body, type=list[msgspec.Raw])
    keys = [entry.key for entry in msgspec.json.decode(body, type=list[_Keyed])]
    found = connection.execute(SQL["segment_live_keys"], (sink, segment, json.dumps(keys)))
    live = {key for (key,) in found}
    kept = [index for index, key in enumerate(keys) if key in live]
    rows = decode_row_steps(steps, len(items))
    return (
        len(kept),
        msgspec.json.encode([items[index] for index in kept]),
        encode_row_steps([rows[index] for index in kept]),
    )


def keys_of(body: bytes) -> list[str]:
    """Return the keys of a body's items, in order."""
    return [entry.key for entry in msgspec.json.decode(body, type=list[_Keyed])]


class _Keyed(msgspec.Struct):
    key: str


def _cut(entries: pl.DataFrame, kind: Kind) -> Iterator[tuple[pl.DataFrame, bytes]]:
    pieces = list(entries.iter_slices(ITEMS))
    while pieces:
        piece = pieces.pop(0)
        body = encode(piece, kind)
        if len(body) > BODY_BYTES and piece.height > 1:
            half = piece.height // 2
            pieces[:0] = [piece[:half], piece[half:]]
        else:
            yield piece, body


def _shrink(connection: sqlite3.Connection, segment: int) -> None:
    """Rewrite a body if at least half of its items are superseded, so that its size depends on the live entries."""
    sink, items, live, body, steps = connection.execute(SQL["segment_get"], (segment,)).fetchone()
    if live * 2 > items:
        return
    _, kept, kept_steps = live_body(connection, sink, segment, body, steps)
    connection.execute(SQL["segment_shrink"], (len(kept), kept, kept_steps, segment))


def json_rows(frame: pl.DataFrame) -> str:
    """Return the rows of a frame, one object each, with the names of its columns."""
    # polars 2.1 writes `[]` for a frame that has rows but an empty first chunk, which a filter can produce.
    return frame.rechunk().write_json()
