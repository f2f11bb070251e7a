"""The handler of mass updates: one entry or many entries (contract DS11, M1, M2, M3, M8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from ingestd.wire import names
from workspaced.core.problems import FieldError, Invalid, Problem
from workspaced.http.operations import Call, Work
from workspaced.http.responses import Headers, Response, json_response
from workspaced.resources.data_sinks import mass_store, store
from workspaced.resources.data_sinks.change_effects import effects_of
from workspaced.resources.data_sinks.entry_store import require_room
from workspaced.resources.data_sinks.events import emit_entry_changes, record_bulk
from workspaced.resources.data_sinks.mass_body import Bulk, Single, read_mass
from workspaced.resources.data_sinks.origin_store import find_origins
from workspaced.resources.data_sinks.origins import StoredOrigins, ValueOrigin
from workspaced.resources.data_sinks.records import entry_record
from workspaced.resources.data_sinks.single_upsert import STALE_WRITE, SingleUpsert
from workspaced.resources.data_sinks.sink_routes import read_sink_name
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink, Tally
from workspaced.security.permissions import DATA_SINKS_READ, DATA_SINKS_WRITE
from workspaced.storage.port import Transaction


def update_mass(call: Call) -> Work:
    """Set entries (contract DS11).

    Sets the value of one entry or of many; unknown keys become entries. A bulk is written whole or not at all, unless
    `partial=true`. It has at most $bulk_items items and $bulk_body_bytes bytes. A bulk item may be `{"key": …, "delete":
    true}`. A value that was observed earlier than the stored value is ignored.
    200: The entry. For a bulk: entries in the order of the items, counts (`return=minimal`) or results (`partial`, `dryRun`).
    404: `entry_not_found`: the sink has no such entry.
    409: `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace or of the sink is used up.
    422: `entry_protected`: the sink protects an entry.
    """
    may_create = call.flag("create", default=call.settings.mass_creates)
    partial = call.flag("partial", default=False)
    dry_run = call.flag("dryRun", default=False)
    body = read_mass(call.body, call.settings.limits, key=call.names.get("key"))
    _require_permissions(call, body, dry_run=dry_run)
    match body:
        case Bulk() as bulk if dry_run:
            return _dry_run(call, bulk, may_create=may_create)
        case Single() if dry_run:
            raise Invalid("dry_run_needs_bulk", "Only the bulk form has a dry run.")
        case Single() as single:
            return _single(call, single, may_create=may_create)
        case Bulk() as bulk if partial:
            return _partial(call, bulk, may_create=may_create)
        case bulk:
            return _atomic(call, bulk, may_create=may_create)


def update_mass_by_key(call: Call) -> Work:
    """Set an entry (contract DS11).

    Sets the value of the entry that the path names; an unknown key becomes an entry.
    200: The entry.
    409: `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace or of the sink is used up.
    422: `entry_protected`: the sink protects the entry.
    """
    return update_mass(call)


def _require_permissions(call: Call, body: Single | Bulk, *, dry_run: bool) -> None:
    """Raise ForbiddenProblem if the items need a permission that the caller does not have (contract M8)."""
    if isinstance(body, Bulk) and any(change is not None and change.remove for change in body.changes):
        call.require(DATA_SINKS_WRITE, to="delete entries")
    if dry_run:
        call.require(DATA_SINKS_READ, to="see the present entries in a dry run")


def _single(call: Call, single: Single, *, may_create: bool) -> Work:
    change = single.change
    if change.remove:
        raise Invalid.at("/delete", "delete_needs_bulk", "Only an item of the bulk form can delete.")
    return Work(act=SingleUpsert(call, change, may_create, single.origin), ignored=single.ignored)


def _atomic(call: Call, bulk: Bulk, *, may_create: bool) -> Work:
    """Return the work that writes all items, or no item if an item is invalid."""
    if bulk.faults:
        raise Invalid.because([mistake for index in sorted(bulk.faults) for mistake in bulk.faults[index]])
    changes = [change for change in bulk.changes if change is not None]
    in_order = mass_store.in_key_order(changes)
    minimal = call.prefers_minimal()

    def act(tx: Transaction) -> Response:
        sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
        if fault := mass_store.fault_of(tx, sink, changes, may_create=may_create):
            raise fault
        tally = _apply(tx, sink, in_order, call, bulk.origins)
        headers = _headers(tally, minimal=minimal)
        if minimal:
            return json_response(_counts(tally), headers=headers, written=tally.written)
        by_key = mass_store.entries_of(tx, sink, changes)
        records = [_record_of(by_key, change, sink) for change in changes]
        return json_response(
            {"entries": records} if bulk.enveloped else records, headers=headers, written=tally.written
        )

    return Work(act=act, weight=len(changes), ignored=bulk.ignored)


def _partial(call: Call, bulk: Bulk, *, may_create: bool) -> Work:
    """Return the work that writes the valid items, and reports the errors of all other items."""
    minimal = call.prefers_minimal()

    def act(tx: Transaction) -> Response:
        sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
        accepted, errors = _checked(tx, sink, bulk, may_create=may_create)
        changes = [change for _, change in accepted]
        tally = _apply(tx, sink, changes, call, bulk.origins)
        headers = _headers(tally, minimal=minimal)
        failures = [{"index": index, **errors[index]} for index in sorted(errors)]
        if minimal:
            counts = {**_counts(tally), "failed": len(failures), "results": failures}
            return json_response(counts, headers=headers, written=tally.written)
        by_key = mass_store.entries_of(tx, sink, changes) if changes else {}
        results: list[dict[str, Any]] = [
            {"index": index, "status": 200, "entry": _record_of(by_key, change, sink)} for index, change in accepted
        ]
        return json_response(_summary(results, failures), headers=headers, written=tally.written)

    return Work(act=act, weight=len(bulk.changes), ignored=bulk.ignored)


def _dry_run(call: Call, bulk: Bulk, *, may_create: bool) -> Work:
    """Return the work that reports the present entry and the effect of each valid item, and the errors of all other items.

    The work changes nothing.
    """
    wants_origin = call.flag("origin", default=False)

    def act(tx: Transaction) -> Response:
        sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
        accepted, errors = _checked(tx, sink, bulk, may_create=may_create)
        changes = [change for _, change in accepted]
        present = mass_store.entries_of(tx, sink, changes) if changes else {}
        origins = find_origins(tx, (entry.origin for entry in present.values())) if wants_origin else None
        effects = list(effects_of(changes, present))
        require_room(sink, effects.count("created") - effects.count("deleted"), call.settings.limits)
        results: list[dict[str, Any]] = [
            {"index": index, "status": 200, "effect": effect, "entry": _record_of(present, change, sink, origins)}
            for (index, change), effect in zip(accepted, effects, strict=True)
        ]
        return json_response(_summary(results, [{"index": index, **errors[index]} for index in errors]))

    return Work(act=act, weight=len(bulk.changes), ignored=bulk.ignored)


def _summary(succeeded: list[dict[str, Any]], failed: list[dict[str, Any]]) -> dict[str, object]:
    results = sorted(succeeded + failed, key=itemgetter("index"))
    return {"results": results, "succeeded": len(succeeded), "failed": len(failed)}


def _checked(
    tx: Transaction, sink: StoredSink, bulk: Bulk, *, may_create: bool
) -> tuple[list[tuple[int, Change]], dict[int, dict[str, object]]]:
    """Return the valid items with their indexes, and the errors of all other items, by index."""
    errors = {index: _error(Invalid.because(mistakes)) for index, mistakes in bulk.faults.items()}
    sound = [(index, change) for index, change in enumerate(bulk.changes) if change is not None]
    for place, problem in mass_store.faults_of(tx, sink, [change for _, change in sound], may_create=may_create):
        errors[sound[place][0]] = _error(problem)
    return [(index, change) for index, change in sound if index not in errors], errors


def _apply(
    tx: Transaction, sink: StoredSink, changes: Sequence[Change], call: Call, origins: Sequence[ValueOrigin]
) -> Tally:
    if not changes:
        return Tally()
    with emit_entry_changes(tx, call, sink, changes):
        tally = mass_store.apply_changes(tx, call, sink, changes, origins)
    record_bulk(tx, call, sink, tally, origins)
    return tally


def _headers(tally: Tally, *, minimal: bool) -> Headers:
    stale: Headers = ((STALE_WRITE, "ignored"),) if tally.stale else ()
    applied: Headers = ((names.PREFERENCE_APPLIED, names.RETURN_MINIMAL),) if minimal else ()
    return (*stale, *applied)


def _counts(tally: Tally) -> dict[str, int]:
    return {"accepted": tally.accepted, **tally.written}


def _record_of(
    by_key: Mapping[str, StoredEntry], change: Change, sink: StoredSink, origins: StoredOrigins | None = None
) -> object:
    """Return the record of the entry with the item's key; None: no entry has the key. ``origins`` None: omit the origin."""
    entry = by_key.get(change.key)
    return entry_record(entry, sink.id, origins) if entry else None


def _error(problem: Problem) -> dict[str, object]:
    mistakes: Sequence[FieldError] = problem.mistakes
    error: dict[str, object] = {"code": problem.code, "detail": problem.detail, "error": problem.title}
    if mistakes:
        error["errors"] = [{"pointer": one.pointer, "code": one.code, "detail": one.detail} for one in mistakes]
    return {"status": problem.status, "error": error}
