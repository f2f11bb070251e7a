"""The part of a claim from one segment."""

from __future__ import annotations

import sqlite3

import msgspec
from msgspec.structs import replace

from ingestd.mirror.port import ClaimPart, PartOrigin
from ingestd.mirror.sqlite.entries.segments import live_body
from ingestd.mirror.sqlite.sql import SQL
from ingestd.wire.origin import decode_row_steps, encode_row_steps


def claim_part(
    reader: sqlite3.Connection, sink: int, segment: int, max_items: int, max_bytes: int, *, oldest: int
) -> ClaimPart | None:
    """Return the entries of a segment that are still desired, up to the limits; None if there are none. See `ClaimPart`."""
    row = reader.execute(SQL["segment_body"], (segment,)).fetchone()
    if row is None:
        return None
    kind, items, live, body, steps, pipeline, partition, file, run = row
    if live < items:
        live, body, steps = live_body(reader, sink, segment, body, steps)
    if not live:
        return None
    origin = PartOrigin(pipeline=pipeline, partition=partition, file=file, run=run)
    part = ClaimPart(segment=segment, kind=kind, items=live, body=body, oldest=oldest, origin=origin, row_steps=steps)
    if live <= max_items and len(body) <= max_bytes:
        return part
    head: list[msgspec.Raw] = []
    size = 2
    for item in msgspec.json.decode(body, type=list[msgspec.Raw]):
        size += len(bytes(item)) + 1
        if head and (len(head) == max_items or size > max_bytes):
            break
        head.append(item)
    steps = encode_row_steps(decode_row_steps(steps, live)[: len(head)])
    return replace(part, items=len(head), body=msgspec.json.encode(head), row_steps=steps, whole=False)
