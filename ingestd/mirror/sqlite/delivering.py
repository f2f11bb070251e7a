"""Delivery's side: what is pending is claimed, and settled, released or parked."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Attempt, Claim, LaneState, Parked, Part, Trouble
from ingestd.mirror.sqlite.adopting import adopt_entries, forget_entries
from ingestd.mirror.sqlite.connection import StateFile
from ingestd.mirror.sqlite.parking import park_entries
from ingestd.mirror.sqlite.segments import keys_of, live_body, settle_entries
from ingestd.mirror.sqlite.sql import SQL

P = ParamSpec("P")
T = TypeVar("T")


class DeliverySide:
    """Implements `ingestd.mirror.port.Deliverable` over a state file.

    Claims read through a connection and a thread of their own, so that a large batch being written does not hold up what
    is sent meanwhile. ``out`` holds the claimed segments; it lives as long as the process, because a claim that a crash
    took is pending again. ``watched`` holds the sinks that are being read back: of those, removals are taken note of.
    """

    def __init__(self, state: StateFile, *, now: Callable[[], float], out: set[int], watched: set[int]) -> None:
        self._state = state
        self._now = now
        self._out = out
        self._watched = watched
        self._claiming = threading.Lock()
        self._reader = state.reader()
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="mirror-claims")
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="mirror-settles")

    async def lanes(self) -> list[LaneState]:
        """See `Deliverable.lanes`."""
        return await _in(self._reads, self._lanes)

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> None:
        """See `Deliverable.remember_sink`."""
        await _in(self._writes, self._remember_sink, sink, workspace_id, sink_id, adopted)

    async def forget_sink(self, sink: int) -> None:
        """See `Deliverable.forget_sink`."""
        await _in(self._writes, self._forget_sink, sink)

    async def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        """See `Deliverable.adopt`."""
        return await _in(self._writes, self._adopt, sink, entries)

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        """See `Deliverable.claim`."""
        return await _in(self._reads, self._claim, sink, max_items, max_bytes)

    async def settle(self, claim: Claim, *, attempt: Attempt | None = None) -> None:
        """See `Deliverable.settle`."""
        await _in(self._writes, self._settle, claim, attempt)

    async def settle_some(
        self, claim: Claim, *, delivered: Sequence[str], parked: Sequence[Parked] = (), attempt: Attempt | None = None
    ) -> None:
        """See `Deliverable.settle_some`."""
        await _in(self._writes, self._settle_some, claim, delivered, parked, attempt)

    async def release(self, claim: Claim, *, attempt: Attempt | None = None) -> None:
        """See `Deliverable.release`."""
        if attempt:
            await self.note_attempt(claim.sink, attempt)
        self._give_back(claim)

    async def note_attempt(self, sink: int, attempt: Attempt) -> None:
        """See `Deliverable.note_attempt`."""
        await _in(self._writes, self._note, sink, attempt)

    async def note_trouble(self, sink: int, trouble: Trouble | None) -> None:
        """See `Deliverable.note_trouble`."""
        await _in(self._writes, self._note_trouble, sink, trouble)

    def close(self) -> None:
        """Wait for what is under way and let go of the threads."""
        self._writes.shutdown()
        self._reads.shutdown()
        self._reader.close()

    # ---------------------------------------------------------------------------------------- in the reading thread

    def _lanes(self) -> list[LaneState]:
        return [
            LaneState(
                id=identity,
                address=SinkAddress(workspace=workspace, by=by, name=name),
                workspace_id=workspace_id,
                sink_id=sink_id,
                adopted=bool(adopted),
                pending=pending,
            )
            for identity, workspace, by, name, workspace_id, sink_id, adopted, pending in self._reader.execute(
                SQL["lanes"]
            )
        ]

    def _claim(self, sink: int, max_items: int, max_bytes: int) -> Claim | None:
        chosen = self._choose(sink, max_items, max_bytes)
        parts = []
        # The bodies are read after the segments were marked as out: what is superseded from now on knows of this claim.
        for segment in chosen:
            part = self._part(sink, segment, max_items, max_bytes)
            if part is None:
                self._out.discard(segment)
            else:
                parts.append(part)
        return Claim(sink=sink, parts=tuple(parts)) if parts else None

    def _choose(self, sink: int, max_items: int, max_bytes: int) -> list[int]:
        chosen: list[int] = []
        items, size, after = 0, 2, 0
        with self._claiming:
            # What this very claim picks up does not block: its bodies are read below, without what was superseded.
            elsewhere = frozenset(self._out)
            while rows := self._reader.execute(SQL["segments_pending"], (sink, after)).fetchall():
                for segment, live, length, over in rows:
                    after = segment
                    if segment in elsewhere or not elsewhere.isdisjoint(json.loads(over)):
                        continue
                    if chosen and (items + live > max_items or size + length > max_bytes):
                        return chosen
                    self._out.add(segment)
                    chosen.append(segment)
                    items, size = items + live, size + length
        return chosen

    def _part(self, sink: int, segment: int, max_items: int, max_bytes: int) -> Part | None:
        row = self._reader.execute(SQL["segment_body"], (segment,)).fetchone()
        if row is None:
            return None
        kind, items, live, body = row
        if live < items:
            live, body = live_body(self._reader, sink, segment, body)
        if not live:
            return None
        if live <= max_items and len(body) <= max_bytes:
            return Part(segment=segment, kind=kind, items=live, body=body)
        head: list[msgspec.Raw] = []
        size = 2
        for item in msgspec.json.decode(body, type=list[msgspec.Raw]):
            size += len(bytes(item)) + 1
            if head and (len(head) == max_items or size > max_bytes):
                break
            head.append(item)
        return Part(segment=segment, kind=kind, items=len(head), body=msgspec.json.encode(head), whole=False)

    def _give_back(self, claim: Claim) -> None:
        with self._claiming:
            self._out.difference_update(part.segment for part in claim.parts)

    # ---------------------------------------------------------------------------------------- in the settling thread

    def _remember_sink(self, sink: int, workspace_id: str, sink_id: str, adopted: bool) -> None:
        with self._state.writing() as connection:
            connection.execute(SQL["sink_remember"], (workspace_id, sink_id, int(adopted), sink))

    def _forget_sink(self, sink: int) -> None:
        with self._state.writing() as connection:
            self._watched.discard(sink)
            forget_entries(connection, sink)
            connection.execute(SQL["sink_remember"], ("", "", 0, sink))

    def _adopt(self, sink: int, entries: pl.DataFrame) -> int:
        with self._state.writing() as connection:
            return adopt_entries(connection, sink, entries, out=self._out)

    def _settle(self, claim: Claim, attempt: Attempt | None) -> None:
        with self._state.writing() as connection:
            for part in claim.parts:
                if not part.whole:
                    self._settle_keys(connection, claim.sink, (part,), keys_of(part.body))
                    continue
                if part.kind == "delete":
                    keys = json.dumps(keys_of(part.body))
                    if claim.sink in self._watched:
                        connection.execute(SQL["gone_part"], (claim.sink, keys))
                    connection.execute(SQL["entries_delete_removed"], (claim.sink, part.segment, keys))
                connection.execute(SQL["segment_drop"], (part.segment,))
            connection.execute(SQL["trouble_over"], (claim.sink,))
            self._add_attempt(connection, claim.sink, attempt)
        self._give_back(claim)

    def _settle_some(
        self, claim: Claim, delivered: Sequence[str], parked: Sequence[Parked], attempt: Attempt | None
    ) -> None:
        with self._state.writing() as connection:
            refused = {entry.key: entry for entry in parked}
            if refused:
                segments = json.dumps([part.segment for part in claim.parts])
                origins = connection.execute(
                    SQL["entries_origin"], (claim.sink, json.dumps(list(refused)), segments)
                ).fetchall()
                park_entries(connection, claim.sink, self._now(), refused, origins)
            self._settle_keys(connection, claim.sink, claim.parts, [*delivered, *refused])
            connection.execute(SQL["trouble_over"], (claim.sink,))
            self._add_attempt(connection, claim.sink, attempt)

    def _settle_keys(
        self, connection: sqlite3.Connection, sink: int, parts: Iterable[Part], keys: Sequence[str]
    ) -> None:
        """Settle entries of some parts; of those that were to be removed, nothing is kept."""
        settle_entries(connection, sink, keys, [part.segment for part in parts])
        settled = (sink, json.dumps(list(keys)))
        if sink in self._watched:
            connection.execute(SQL["gone_settled"], settled)
        connection.execute(SQL["entries_delete_settled"], settled)

    def _note_trouble(self, sink: int, trouble: Trouble | None) -> None:
        with self._state.writing() as connection:
            if trouble is None:
                connection.execute(SQL["trouble_over"], (sink,))
            else:
                told = (sink, trouble.standing, trouble.sentence, trouble.since, trouble.until)
                connection.execute(SQL["trouble_note"], told)

    def _note(self, sink: int, attempt: Attempt) -> None:
        with self._state.writing() as connection:
            self._add_attempt(connection, sink, attempt)

    def _add_attempt(self, connection: sqlite3.Connection, sink: int, attempt: Attempt | None) -> None:
        if attempt is None:
            return
        connection.execute(
            SQL["attempt_add"],
            (
                sink,
                self._now(),
                attempt.operation,
                attempt.items,
                attempt.status,
                attempt.milliseconds,
                attempt.outcome,
                attempt.sentence,
            ),
        )
        connection.execute(SQL["attempt_prune"])


async def _in(pool: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run in a thread; a cancelled caller does not undo what the thread does, so the work is shielded to its end."""
    return await asyncio.shield(asyncio.wrap_future(pool.submit(call, *args, **kwargs)))
