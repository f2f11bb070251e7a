"""The delivery side of the mirror in memory, for tests of delivery without a state file.

It has the guarantees of the stores in `ingestd.mirror.sqlite` except durability. It stores rejections and drift only for entries,
and has no records, no partitions and no Unicode normalization.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.mirror.drift import (
    START,
    DriftFinding,
    DriftPage,
    DriftStatus,
    RemoveUnexplained,
    Unexplained,
    UnexplainedPage,
)
from ingestd.mirror.port import (
    Claim,
    ClaimPart,
    DeliveryAttempt,
    HeldRun,
    Kind,
    LaneBlocker,
    LaneState,
    RejectedEntry,
)
from ingestd.mirror.rejections import (
    Forgotten,
    RecordPage,
    Refusal,
    Rejection,
    Retried,
    Selection,
)

Desired = tuple[str | None, str]
"""Value and data type."""


@dataclass(slots=True, kw_only=True)
class _Row:
    value: str | None
    data_type: str
    removed: bool
    version: int
    segment: int
    oldest: int = 0
    acknowledged: int = 0
    known: bool = False
    in_flight: bool = False

    @property
    def pending(self) -> bool:
        return self.version > self.acknowledged

    @property
    def kind(self) -> Kind:
        if self.removed:
            return "delete"
        return "update" if self.known else "create"


@dataclass(slots=True, kw_only=True)
class _Sink:
    state: LaneState
    rows: dict[str, _Row] = field(default_factory=dict)
    refusals: dict[str, list[Refusal]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    findings: dict[str, tuple[DriftFinding, int]] = field(default_factory=dict)
    status: DriftStatus | None = None


@dataclass(slots=True, kw_only=True)
class _Check:
    sink: int
    newest: int
    pending: set[str]
    seen: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    lost: bool = False


class MemoryMirror:
    """A mirror with `desire` as the intake of one pipeline. ``attempts`` and ``rejected_entries``: the reports of delivery."""

    pipeline = "desires"

    def __init__(self) -> None:
        self._sinks: dict[int, _Sink] = {}
        self._versions = itertools.count(1)
        self._segments = itertools.count(1)
        self._claimed = self._claimed_before = 0
        self._in_flight: dict[tuple[ClaimPart, ...], dict[str, tuple[int, Kind]]] = {}
        self.blockers: dict[int, LaneBlocker | None] = {}
        self.attempts: list[tuple[int, DeliveryAttempt]] = []
        self.rejected_entries: dict[str, RejectedEntry] = {}
        self._rejected: dict[int, tuple[int, Rejection]] = {}
        self._numbers = itertools.count(1)
        self._clock = itertools.count(1)
        self._forgotten: Forgotten | None = None
        self._checks: dict[int, _Check] = {}

    # ------------------------------------------------------------------------------------------------- intake

    def desire(self, address: SinkAddress, entries: Mapping[str, Desired | None]) -> int:
        """Set the desired entries of a sink (None: the sink has no such entry); return the sink's id in the mirror."""
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
                self._remove_rejection(lane, key)
                rows[key] = _Row(
                    value=value,
                    data_type=data_type,
                    removed=False,
                    version=next(self._versions),
                    segment=segment,
                    oldest=segment,
                )
            elif wanted is None and not (row.known or row.pending) and self._remove_rejection(lane, key):
                del rows[key]  # the service has refused every value
            elif (row.value, row.data_type, row.removed) != (value, data_type, wanted is None):
                row.oldest = row.oldest if row.pending else segment
                row.value, row.data_type, row.removed = value, data_type, wanted is None
                row.version, row.segment = next(self._versions), segment
                self._remove_rejection(lane, key)
            else:
                # If the entry was found in the service, a source names it from now on.
                row.segment = row.segment or segment
        return lane

    def pending(self, lane: int) -> set[str]:
        """Return the keys that wait for delivery."""
        return {key for key, row in self._sinks[lane].rows.items() if row.pending}

    def forget_claims(self) -> None:
        """Forget all claims, as a crash does: the claimed entries are pending again."""
        self._in_flight.clear()
        self._claimed_before = self._claimed
        for sink in self._sinks.values():
            for row in sink.rows.values():
                row.in_flight = False

    # ----------------------------------------------------------------------------------------------- delivery

    async def lanes(self) -> list[LaneState]:
        return [
            replace(sink.state, pending=len(self.pending(lane)), claimed_before=self._claimed_before)
            for lane, sink in self._sinks.items()
        ]

    async def lane(self, sink: int) -> LaneState | None:
        return next((state for state in await self.lanes() if state.id == sink), None)

    async def remember_sink(self, sink: int, *, workspace_id: str, sink_id: str, adopted: bool) -> Sequence[HeldRun]:
        known = self._sinks[sink]
        known.state = replace(known.state, workspace_id=workspace_id, sink_id=sink_id, adopted=adopted)
        return ()

    async def other_address(self, sink: int, sink_id: str) -> SinkAddress | None:  # noqa: ARG002 - it knows no pipelines
        return None

    async def forget_sink(self, sink: int, *, lost: str = "") -> bool:
        if lost and self._sinks[sink].state.sink_id != lost:
            return False
        await self.remember_sink(sink, workspace_id="", sink_id="", adopted=False)
        rows = self._sinks[sink].rows
        for check in self._checks.values():
            check.lost = check.lost or check.sink == sink
        for key, row in list(rows.items()):
            self._remove_rejection(sink, key)
            row.known = False
            if row.removed:
                del rows[key]
            else:
                row.version, row.segment = next(self._versions), next(self._segments)
        return True

    async def adopt(self, sink: int, entries: pl.DataFrame) -> int:
        rows, equal = self._sinks[sink].rows, 0
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
                    acknowledged=version,
                    known=True,
                )
                continue
            row.known = True
            if (
                row.pending
                and not row.in_flight
                and not row.removed
                and (row.value, row.data_type) == (value, data_type)
            ):
                row.acknowledged = row.version
                equal += 1
        return equal

    async def claim(self, sink: int, *, max_items: int, max_bytes: int) -> Claim | None:
        rows = self._sinks[sink].rows
        waiting = sorted((row.version, key) for key, row in rows.items() if row.pending and not row.in_flight)
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
        is_complete = len(chosen) == sum(row.pending for row in rows.values())
        claim = Claim(sink=sink, parts=tuple(_parts(chosen)), is_complete=is_complete)
        self._claimed = max(self._claimed, *(part.segment for part in claim.parts))
        self._in_flight[_token(claim)] = {key: (row.version, row.kind) for key, row, _ in chosen}
        for _, row, _ in chosen:
            row.in_flight = True
        return claim

    async def acknowledge(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        self._note(claim.sink, attempt)
        self._acknowledge(claim, list(self._in_flight.get(_token(claim), ())))
        self._in_flight.pop(_token(claim), None)

    async def acknowledge_some(
        self,
        claim: Claim,
        *,
        delivered: Sequence[str],
        rejected: Sequence[RejectedEntry] = (),
        attempt: DeliveryAttempt | None = None,
    ) -> None:
        self._note(claim.sink, attempt)
        self._acknowledge(claim, delivered)
        held, rows = self._in_flight[_token(claim)], self._sinks[claim.sink].rows
        for entry in rejected:
            version, _ = held.pop(entry.key)
            self.rejected_entries[entry.key] = entry
            self._reject(claim.sink, entry)
            rows[entry.key].acknowledged = version
            rows[entry.key].in_flight = False
            if rows[entry.key].removed and not rows[entry.key].pending:
                self._remove(claim.sink, entry.key)

    async def release(self, claim: Claim, *, attempt: DeliveryAttempt | None = None) -> None:
        self._note(claim.sink, attempt)
        for key in self._in_flight.pop(_token(claim), {}):
            if (row := self._sinks[claim.sink].rows.get(key)) is not None:
                row.in_flight = False

    async def note_attempt(self, sink: int, attempt: DeliveryAttempt) -> None:
        self._note(sink, attempt)

    async def note_blocker(self, sink: int, blocker: LaneBlocker | None) -> None:
        self.blockers[sink] = blocker

    def _note(self, sink: int, attempt: DeliveryAttempt | None) -> None:
        if attempt is not None:
            self.attempts.append((sink, attempt))

    def _acknowledge(self, claim: Claim, keys: Sequence[str]) -> None:
        held, rows = self._in_flight.get(_token(claim), {}), self._sinks[claim.sink].rows
        for key in keys:
            version, kind = held.pop(key)
            row = rows[key]
            row.in_flight = False
            row.known = kind != "delete"
            row.acknowledged = max(row.acknowledged, version)
            if row.removed and not row.pending:
                self._remove(claim.sink, key)

    def _remove(self, sink: int, key: str) -> None:
        del self._sinks[sink].rows[key]
        for check in self._checks.values():
            if check.sink == sink:
                check.gone.add(key)

    # ----------------------------------------------------------------------------------------------- rejected

    def selected(self, selection: Selection, *, after: int = 0, limit: int) -> list[Rejection]:
        return [one for number, (_, one) in self._rejected.items() if number > after and _fits(one, selection)][:limit]

    def count(self, selection: Selection) -> int:
        return len(self.selected(selection, limit=len(self._rejected)))

    def newest(self) -> int:
        return max(self._rejected, default=0)

    def records(self, selection: Selection, *, after: int = 0, until: int, limit: int) -> RecordPage | None:
        page = [one for one in self.selected(selection, after=after, limit=limit) if one.id <= until]
        found = [one for one in page if one.record]
        pipelines = tuple(dict.fromkeys(one.pipeline for one in found))
        return (
            RecordPage(records=[one.record for one in found], pipelines=pipelines, last=page[-1].id) if page else None
        )

    def refusals(self, rejection: int) -> list[Refusal]:
        sink, one = self._rejected[rejection]
        return self._sinks[sink].refusals[one.key]

    def forgotten(self) -> Forgotten | None:
        return self._forgotten

    async def retry(self, selection: Selection) -> Retried:
        chosen = self.selected(selection, limit=len(self._rejected))
        for one in chosen:
            sink, _ = self._rejected.pop(one.id)
            rows = self._sinks[sink].rows
            if one.removal and one.key not in rows:
                rows[one.key] = _Row(value=None, data_type="", removed=True, version=0, segment=0, known=True)
            rows[one.key].version, rows[one.key].segment = next(self._versions), next(self._segments)
        return Retried(entries=len(chosen))

    async def drop(self, selection: Selection) -> int:
        chosen = self.selected(selection, limit=len(self._rejected))
        self._forget(chosen)
        return len(chosen)

    async def bound(self, *, keep_seconds: float | None, keep_rows: int | None) -> int:
        now = next(self._clock)
        newest_first = sorted((one for _, one in self._rejected.values()), key=lambda one: (-one.last_at, -one.id))
        old = [one for one in newest_first if keep_seconds is not None and one.last_at < now - keep_seconds]
        beyond = newest_first[keep_rows:] if keep_rows is not None else []
        chosen = {one.id: one for one in [*old, *beyond]}
        self._forget(chosen.values())
        if chosen:
            before = self._forgotten.count if self._forgotten else 0
            self._forgotten = Forgotten(count=before + len(chosen), at=now)
        return len(chosen)

    def _reject(self, sink: int, entry: RejectedEntry) -> None:
        self._remove_rejection(sink, entry.key)
        known, at = self._sinks[sink], float(next(self._clock))
        row, refusals = known.rows[entry.key], known.refusals.setdefault(entry.key, [])
        refusals.append(
            Refusal(
                at=at, operation=entry.operation, status=entry.status, request_id=entry.request_id, words=entry.reason
            )
        )
        number = next(self._numbers)
        rejection = Rejection(
            id=number, subject="entry", pipeline=self.pipeline, partition=str(known.state.address),
            workspace=known.state.address.workspace, sink=known.state.address.name, position=None, field="",
            key=entry.key, value=row.value, data_type=row.data_type, removal=row.removed, reason=entry.reason,
            status=entry.status, record={}, at=refusals[0].at, last_at=at, times=len(refusals), retried=False,
        )  # fmt: skip
        self._rejected[number] = (sink, rejection)

    def _remove_rejection(self, sink: int, key: str) -> bool:
        """Delete the rejection of a key; return whether the service has stored nothing of the entry."""
        found = [n for n, (where, one) in self._rejected.items() if (where, one.key) == (sink, key)]
        deleted = [self._rejected.pop(number)[1] for number in found]
        return any(one.status in {400, 413, 414, 422} for one in deleted)

    def _forget(self, chosen: Collection[Rejection]) -> None:
        for one in chosen:
            sink, _ = self._rejected.pop(one.id)
            known = self._sinks[sink]
            known.refusals.pop(one.key, None)
            known.dropped[one.key] = known.rows[one.key].version if one.key in known.rows else 0

    # -------------------------------------------------------------------------------------------------- drift

    def drift(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> DriftPage:
        rest = sorted(
            ((lane, key), finding)
            for lane, sink in self._sinks.items()
            for key, (finding, _) in sink.findings.items()
            if self.pipeline in pipelines and (lane, key) > after
        )[:limit]
        return DriftPage(findings=tuple(one for _, one in rest), next=rest[-1][0] if len(rest) == limit else None)

    def drift_checks(self, pipelines: Collection[str]) -> list[tuple[str, DriftStatus]]:
        sinks = self._sinks.values() if self.pipeline in pipelines else ()
        return [(str(sink.state.address), sink.status) for sink in sinks if sink.status is not None]

    async def begin_check(self, sink: int) -> int:
        number = next(self._numbers)
        self._checks[number] = _Check(sink=sink, newest=next(self._versions), pending=self.pending(sink))
        return number

    async def show(self, check: int, entries: pl.DataFrame) -> None:
        for key, value, data_type in entries.select("key", "value", "data_type").iter_rows():
            self._checks[check].seen[key] = (value, data_type)

    def unexplained(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> UnexplainedPage:
        found = [
            (number, Unexplained(
                sink=sink.state.address.name, workspace=sink.state.address.workspace, key=key, value=row.value,
                data_type=row.data_type, pipeline="", why="found",
            ))
            for number, sink in self._sinks.items()
            for key, row in sorted(sink.rows.items())
            if self.pipeline in pipelines and (number, key) > after and not row.segment and not row.pending
        ]  # fmt: skip
        more = (found[limit - 1][0], found[limit - 1][1].key) if len(found) > limit else None
        return UnexplainedPage(entries=tuple(one for _, one in found[:limit]), next=more)

    async def end_check(
        self,
        check: int,
        *,
        unexplained: RemoveUnexplained = "keep",
        guards: Collection[Guard] = (),
        doubt: bool = False,
    ) -> DriftStatus:
        del doubt, guards  # This mirror is never restored from an older copy, and adopts no entries by their author.
        ended = self._checks.pop(check)
        sink, at = self._sinks[ended.sink], float(next(self._clock))
        if ended.lost:
            sink.status = replace(sink.status or _NEVER, tried_at=at, failure="The service lost the sink.")
            return sink.status
        found = {finding.key: (finding, version) for finding, version in self._compare(ended, at)}
        for key, (finding, version) in found.items():
            before, _ = sink.findings.get(key, (finding, 0))
            if (before.what, before.found) == (finding.what, finding.found):
                found[key] = (replace(finding, since=before.since), version)
        sink.findings = found
        for key, row in list(sink.rows.items()):
            if not row.segment and not row.pending:
                if key not in ended.seen:
                    del sink.rows[key]
                else:
                    row.value, row.data_type = ended.seen[key][0], ended.seen[key][1] or row.data_type
        strange = [key for key, row in sink.rows.items() if not row.segment and not row.pending]
        for key in strange if unexplained == "remove" else ():
            sink.rows[key] = _Row(
                value=None, data_type="", removed=True, version=next(self._versions), segment=next(self._segments), known=True
            )  # fmt: skip
        swept = len(strange) if unexplained == "remove" else 0
        whats = [finding.what for finding, _ in found.values()]
        sink.status = DriftStatus(
            tried_at=at, at=at, entries=len(ended.seen), added=whats.count("added"), changed=whats.count("changed"),
            removed=whats.count("removed"), failure="", unexplained=len(strange) - swept,
        )  # fmt: skip
        return replace(sink.status, swept=swept)

    async def abandon_check(self, check: int, failure: str) -> None:
        sink = self._sinks[self._checks.pop(check).sink]
        sink.status = replace(sink.status or _NEVER, tried_at=float(next(self._clock)), failure=failure)

    async def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:
        known, count = self._sinks[sink], 0
        for key, finding in self._open_findings(sink, pipelines):
            if finding.what == "added" and remove_added:
                known.rows[key] = _Row(
                    value=None, data_type="", removed=True, version=next(self._versions), segment=next(self._segments),
                    known=True,
                )  # fmt: skip
            elif finding.what != "added":
                row = known.rows[key]
                row.version, row.segment = next(self._versions), next(self._segments)
                row.known = finding.what == "changed"
            else:
                continue
            count += 1
            known.findings[key] = (
                replace(finding, reaction="removed again" if finding.what == "added" else "sent again"),
                -1,
            )
        return count

    async def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:
        known, count = self._sinks[sink], 0
        for key, finding in self._open_findings(sink, pipelines):
            if finding.what == "removed":
                del known.rows[key]
            elif finding.what == "changed":
                row = known.rows[key]
                row.value, row.data_type = finding.found, finding.found_type or row.data_type
            else:
                await self.adopt(
                    sink, pl.DataFrame({"key": [key], "value": [finding.found], "data_type": [finding.found_type]})
                )
            count += 1
            known.findings[key] = (replace(finding, reaction="adopted"), -1)
        return count

    def _compare(self, check: _Check, at: float) -> Iterator[tuple[DriftFinding, int]]:
        sink = self._sinks[check.sink]
        rejected = {one.key for where, one in self._rejected.values() if where == check.sink}
        blank = DriftFinding(
            sink=sink.state.address.name, workspace=sink.state.address.workspace, key="", what="added", pipeline="",
            wanted=None, wanted_type="", found=None, found_type="", since=at, reaction="",
        )  # fmt: skip
        for key, (value, data_type) in check.seen.items():
            if key not in sink.rows and key not in check.gone | rejected and key not in sink.dropped:
                yield replace(blank, key=key, found=value, found_type=data_type or ""), 0
        for key, row in sink.rows.items():
            untouched = row.version <= check.newest and key not in check.pending
            refused = key in rejected or sink.dropped.get(key) == row.version
            if not row.segment or row.removed or not untouched or refused:
                continue
            ours = replace(blank, key=key, pipeline=self.pipeline, wanted=row.value, wanted_type=row.data_type)
            if key not in check.seen:
                yield replace(ours, what="removed"), row.version
                continue
            value, data_type = check.seen[key]
            if value != row.value or data_type not in {None, row.data_type}:
                yield replace(ours, what="changed", found=value, found_type=data_type or ""), row.version

    def _open_findings(self, sink: int, pipelines: Collection[str]) -> list[tuple[str, DriftFinding]]:
        rows = self._sinks[sink].rows
        return [
            (key, finding)
            for key, (finding, version) in self._sinks[sink].findings.items()
            if version == (rows[key].version if key in rows else 0)
            and (finding.what == "added" or finding.pipeline in pipelines)
        ]


_NEVER = DriftStatus(tried_at=0, at=None, entries=0, added=0, changed=0, removed=0, failure="")


def _fits(one: Rejection, selection: Selection) -> bool:
    return (
        (not selection.ids or one.id in selection.ids)
        and selection.pipeline in {"", one.pipeline}
        and selection.reason.lower() in one.reason.lower()
        and (not selection.file or fnmatchcase(one.partition, selection.file))
        and (not selection.key or one.key == selection.key or fnmatchcase(one.key, selection.key))
    )


def _token(claim: Claim) -> tuple[ClaimPart, ...]:
    """Return the identity of a claim in flight. It is unique, because no key is in two claims."""
    return claim.parts


def _item(key: str, row: _Row) -> bytes:
    if row.removed:
        return msgspec.json.encode({"key": key, "delete": True})
    return msgspec.json.encode({"key": key, "value": row.value, "dataType": row.data_type})


def _parts(chosen: Sequence[tuple[str, _Row, bytes]]) -> Iterator[ClaimPart]:
    grouped: dict[tuple[int, Kind], list[tuple[int, bytes]]] = {}
    for _, row, item in chosen:
        grouped.setdefault((row.segment, row.kind), []).append((row.oldest, item))
    for (segment, kind), items in grouped.items():
        body = b"[" + b",".join(item for _, item in items) + b"]"
        oldest = min(segment, *(found for found, _ in items))
        yield ClaimPart(segment=segment, kind=kind, items=len(items), body=body, oldest=oldest)
