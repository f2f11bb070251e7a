"""Segments of pending entries: at most one request of entries of one sink and one kind, already encoded.

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

from ingestd.mirror.port import Kind
from ingestd.mirror.sqlite.sql import SQL

ITEMS = 5000
"""Maximum entries of one segment: the default of a bulk request (contract M3)."""

BODY_BYTES = 4 << 20
"""Encoded size at which a segment is cut, well below the contract's 16 MiB, so that a response is fast."""


def encode(entries: pl.DataFrame, kind: Kind) -> bytes:
    """Return a JSON array of items for the request, from columns ``key``, ``value``, ``data_type``."""
    # Without expressions: their evaluation takes longer than encoding the entries of a small file.
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
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Create segments of ``entries``; yield each new segment's id with its slice.

    ``entries`` may have a column ``segment`` (Int64, null if nothing was pending): the older segments that its rows leave.
    ``over``: for each of these, the segments that it waits for.
    """
    for piece, body in _cut(entries, kind):
        left = sorted(piece["segment"].drop_nulls().unique().to_list()) if "segment" in piece.columns else []
        waits = sorted({*left, *(older for segment in left for older in over.get(segment, ()))})
        row = (sink, partition, kind, piece.height, piece.height, len(body), json.dumps(waits), body)
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
    """Acknowledge single entries of some segments, except superseded ones."""
    row = (sink, json.dumps(list(keys)), json.dumps(list(segments)))
    leave(
        connection,
        Counter(segment for (segment,) in connection.execute(SQL["entries_acknowledge"], row).fetchall()),
    )


def live_body(connection: sqlite3.Connection, sink: int, segment: int, body: bytes) -> tuple[int, bytes]:
    """Return the number of live items of a segment, and a body with only these."""
    items = msgspec.json.decode(body, type=list[msgspec.Raw])
    keys = [entry.key for entry in msgspec.json.decode(body, type=list[_Keyed])]
    rows = connection.execute(SQL["segment_live_keys"], (sink, segment, json.dumps(keys)))
    live = {key for (key,) in rows}
    kept = [item for item, key in zip(items, keys, strict=True) if key in live]
    return len(kept), msgspec.json.encode(kept)


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
    """Rewrite a body if at least half of it is superseded, so that the backlog's size follows its live entries."""
    sink, _, items, live, body = connection.execute(SQL["segment_get"], (segment,)).fetchone()
    if live * 2 > items:
        return
    _, kept = live_body(connection, sink, segment, body)
    connection.execute(SQL["segment_shrink"], (len(kept), kept, segment))


def json_rows(frame: pl.DataFrame) -> str:
    """Return the rows of a frame, one object each, with the names of its columns."""
    # polars 2.1 writes `[]` for a frame that has rows but an empty first chunk, as a filter leaves it.
    return frame.rechunk().write_json()
