"""The delivery's side of the mirror in memory, for tests of the delivery alone. It keeps the port's promises but durability."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.mirror.port import Attempt, Claim, Deliverable, Kind, LaneState, Parked, Part

Desired = tuple[str | None, str]
"""Value and data type."""


@dataclass(slots=True, kw_only=True)
class _Row:
    value: str | None
    data_type: str
    removed: bool
    version: int
    segment: int
    settled: int = 0
    known: bool = False
    out: bool = False

    @property
    def pending(self) -> bool:
        return self.version > self.settled

    @property
    def kind(self) -> Kind:
        if self.removed:
            return "delete"
        return "update" if self.known else "create"


@dataclass(slots=True, kw_only=True)
class _Sink:
    state: LaneState
    rows: dict[str, _Row] = field(default_factory=dict)


class MemoryMirror(Deliverable):
    """``desire`` stands for the intake; ``attempts`` and ``parked`` are what was told."""

    def __init__(self) -> None:
        self._sinks: dict[int, _Sink] = {}
        self._versions = itertools.count(1)
        self._segments = itertools.count(1)
        self._out: dict[tuple[Part, ...], dict[str, tuple[int, Kind]]] = {}
        self.attempts: list[tuple[int, Attempt]] = []
        self.parked: dict[str, Parked] = {}

    # ------------------------------------------------------------------------------------------------- intake

    def desire(self, address: SinkAddress, entries: Mapping[str, Desired | None]) -> int:
        """What a sink should hold from now on, None for nothing; the sink's id in the mirror."""
        found = next((lane for lane, sink in self._sinks.items() if sink.state.address == address), None)
        lane = found if found is not None else len(self._sinks) + 1
        if found is None:
            self._sinks[lane] = _Sink(
                state=LaneState(id=lane, address=address, workspace_id="", sink_id="", adopted=False, pending=0)
            )
        rows = self._sinks[lane].rows
        segment = next(self._segments)
        for key, wanted in entries.items():
            row = rows.get(key)
            if row is None and wanted is None:
                continue
            value, data_type = wanted if wanted is not None else (None, "")
            if row is None:
                rows[key] = _Row(
                    value=value, data_type=data_type, removed=False, version=next(self._versions), segment=segment
                )
            elif (row.value, row.data_type, row.removed) != (value, data_type, wanted is None):
                row.value, row.data_type, row.removed = value, data_type, wanted is None
                row.version, row.segment = next(self._versions), segment
            else:
                row.segment = row.segment or segment  # named from now on, if it was found in the service
        return lane

    def pending(self, lane: int) -> set[str]:
        """The keys that wait for delivery."""
        return {key for key, row in self._sinks[lane].rows.items() if row.pending}

    # ----------------------------------------------------------------------------------------------- delivery

    async def lanes(self) -> list[LaneState]:
        return [replace(sink.state, pending=len(self.pending(lane))) for lane, sink in self._sinks.items()]

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> None:
        known = self._sinks[sink]
        known.state = replace(known.state, workspace_id=workspace_id, sink_id=sink_id, adopted=adopted)

    async def forget_sink(self, sink: int) -> None:
        await self.remember_sink(sink, workspace_id="", sink_id="", adopted=False)
        rows = self._sinks[sink].rows
        for key, row in list(rows.items()):
            row.known = False
            if row.removed:
                del rows[key]
            else:
                row.version, row.segment = next(self._versions), next(self._segments)

    async def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        rows, settled = self._sinks[sink].rows, 0
        for key, value, data_type in entries.select("key", "value", "data_type").iter_rows():
            row = rows.get(key)
            if row is None or (not row.segment and not row.pending):
                version = next(self._versions)
                rows[key] = _Row(
                    value=value,
                    data_type=data_type or "",
                    removed=False,
                    version=version,
                    segment=0,
                    settled=version,
                    known=True,
                )
                continue
            row.known = True
            if row.pending and not row.out and not row.removed and (row.value, row.data_type) == (value, data_type):
                row.settled = row.version
                settled += 1
        return settled

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        rows = self._sinks[sink].rows
        waiting = sorted((row.version, key) for key, row in rows.items() if row.pending and not row.out)
        chosen: list[tuple[str, _Row, bytes]] = []
        size = 2
        for _, key in waiting:
            item = _item(key, rows[key])
            size += len(item) + 1
            if chosen and (len(chosen) >= max_items or size > max_bytes):
                break
            chosen.append((key, rows[key], item))
        if not chosen:
            return None
        claim = Claim(sink=sink, parts=tuple(_parts(chosen)))
        self._out[_token(claim)] = {key: (row.version, row.kind) for key, row, _ in chosen}
        for _, row, _ in chosen:
            row.out = True
        return claim

    async def settle(self, claim: Claim, *, attempt: Attempt | None = None) -> None:
        self._note(claim.sink, attempt)
        self._settle(claim, list(self._out.get(_token(claim), ())))
        self._out.pop(_token(claim), None)

    async def settle_some(
        self, claim: Claim, *, delivered: Sequence[str], parked: Sequence[Parked] = (), attempt: Attempt | None = None
    ) -> None:
        self._note(claim.sink, attempt)
        self._settle(claim, delivered)
        held, rows = self._out[_token(claim)], self._sinks[claim.sink].rows
        for entry in parked:
            version, _ = held.pop(entry.key)
            rows[entry.key].settled = version
            rows[entry.key].out = False
            self.parked[entry.key] = entry

    async def release(self, claim: Claim, *, attempt: Attempt | None = None) -> None:
        self._note(claim.sink, attempt)
        for key in self._out.pop(_token(claim), {}):
            if (row := self._sinks[claim.sink].rows.get(key)) is not None:
                row.out = False

    async def note_attempt(self, sink: int, attempt: Attempt) -> None:
        self._note(sink, attempt)

    def _note(self, sink: int, attempt: Attempt | None) -> None:
        if attempt is not None:
            self.attempts.append((sink, attempt))

    def _settle(self, claim: Claim, keys: Sequence[str]) -> None:
        held, rows = self._out.get(_token(claim), {}), self._sinks[claim.sink].rows
        for key in keys:
            version, kind = held.pop(key)
            row = rows[key]
            row.out = False
            row.known = kind != "delete"
            row.settled = max(row.settled, version)
            if row.removed and not row.pending:
                del rows[key]


def _token(claim: Claim) -> tuple[Part, ...]:
    """What tells a claim from all others that are out: no two hold the same key."""
    return claim.parts


def _item(key: str, row: _Row) -> bytes:
    if row.removed:
        return msgspec.json.encode({"key": key, "delete": True})
    return msgspec.json.encode({"key": key, "value": row.value, "dataType": row.data_type})


def _parts(chosen: Sequence[tuple[str, _Row, bytes]]) -> Iterator[Part]:
    grouped: dict[tuple[int, Kind], list[bytes]] = {}
    for _, row, item in chosen:
        grouped.setdefault((row.segment, row.kind), []).append(item)
    for (segment, kind), items in grouped.items():
        yield Part(segment=segment, kind=kind, items=len(items), body=b"[" + b",".join(items) + b"]")
