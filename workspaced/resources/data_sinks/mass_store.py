"""Mass updates in the database: set-based SQL over staged changes (contract M3, M4, M5, M6, M8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from workspaced.core.problems import ConflictProblem, NotFoundProblem, Problem
from workspaced.http.operations import Call
from workspaced.resources.data_sinks.change_effects import effects_of, least_of
from workspaced.resources.data_sinks.entry_store import find_entry, is_id_in_use, require_room, touch_sink
from workspaced.resources.data_sinks.history_store import columns_of, open_history
from workspaced.resources.data_sinks.origin_store import find_origins, keep_origins
from workspaced.resources.data_sinks.origins import ValueOrigin, origin_number, split_origin
from workspaced.resources.data_sinks.protection import is_refused, refusal
from workspaced.resources.data_sinks.sink_address import ID_MULTIPLIER
from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry, StoredSink, Tally
from workspaced.settings.model import Limits
from workspaced.storage.port import JsonRows, Row, Transaction, Values
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.data_sinks", "queries.sql")
_BY_KEY = itemgetter(0)  # takes a third of the time of ``change.key``
_PLAIN = (None, None, False)
"""The fields ``id``, ``observed_at`` and ``remove`` of a change that only sets a value."""
_WITH_ORIGIN = itemgetter(0, 1, 2, 6)


def in_key_order(changes: Sequence[Change]) -> list[Change]:
    """Return the changes sorted by key. Changes of one key keep their order, so the result of `apply_changes` is the same.

    Callers sort before the transaction begins, to keep the transaction short.
    """
    return sorted(changes, key=_BY_KEY)


def rounds(changes: Sequence[Change]) -> list[list[Change]]:
    """Split the changes into rounds, which are applied one after the other. In a round, each key occurs at most once.

    The changes of a key keep their order. A round is sorted by key, for two reasons: neighbours in the index are written
    together, and bulk calls that lock rows in the same order can't deadlock (contract M4).
    """
    if _all_different(changes):
        return [in_key_order(changes)]
    seen: dict[str, int] = {}
    by_round: list[list[Change]] = []
    for change in changes:
        turn = seen.get(change.key, 0)
        seen[change.key] = turn + 1
        if turn == len(by_round):
            by_round.append([])
        by_round[turn].append(change)
    return [in_key_order(part) for part in by_round]


def apply_changes(
    tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change], origins: Sequence[ValueOrigin] = ()
) -> Tally:
    """Apply all changes in order, record them in the history if the sink has one, and update the sink.

    The ``origin`` of a change contains a position in ``origins``; see `origin_number`.

    Raises:
        ConflictProblem: the quota is reached; the caller must roll back the transaction.
    """
    changes, base = _with_stored_origins(tx, call, sink, changes, origins)
    least, total = _without_repetitions(tx, sink, changes)
    has_history = open_history(tx, call, sink)
    for part in rounds(least) if least else ():
        upserts = sum(1 for change in part if not change.remove)
        added = total.created - total.deleted
        if _may_exceed(sink, added + upserts, call.settings.limits):
            foreseen = list(effects_of(part, entries_of(tx, sink, part)))
            added += foreseen.count("created") - foreseen.count("deleted")
            require_room(sink, added, call.settings.limits)
        values = _write_values(call, _stage(tx, part, sink, has_origins=bool(origins)), base)
        if has_history:
            tx.later(_SQL["record_stage"], {**values, **columns_of(call)})
        effects, existing = _compare(tx, values, len(part))
        if existing and any(change.data_type is None for change in part):
            tx.run(_SQL["keep_data_types"], values)
        if upserts:
            tx.later(_SQL["count_numbers"], values)
            tx.later(_SQL["upsert_stage"], values)
        if effects.deleted:
            tx.later(_SQL["delete_stage"], values)
        total += effects + Tally(created=upserts - existing)
    if total.touched:
        touch_sink(tx, call, sink, added=total.created - total.deleted)
    return total


def entries_of(tx: Transaction, sink: StoredSink, changes: Sequence[Change]) -> Mapping[str, StoredEntry]:
    """Return the present entries with the keys of the changes, by key."""
    keys = dict.fromkeys(change.key for change in changes)
    changes = [Change(key, None, None, None, None, remove=False) for key in sorted(keys)]
    return _by_key(tx.all(_SQL["entries_of_stage"], _stage(tx, changes, sink)))


def upsert_each(
    tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change], origins: Sequence[ValueOrigin] = ()
) -> list[tuple[StoredEntry | None, StoredEntry]]:
    """Write entries with different keys and no given ids. Return each entry before and after its change, in order.

    An older observation changes nothing (contract M6). ``origins``: see `apply_changes`.
    """
    changes, base = _with_stored_origins(tx, call, sink, changes, origins)
    staged = _stage(tx, in_key_order(changes), sink, has_origins=bool(origins))
    present = tx.ask(_SQL["entries_of_stage"], staged) if sink.entry_count else list
    if any(change.data_type is None for change in changes):
        tx.later(_SQL["keep_data_types"], staged)
    values = _write_values(call, staged, base)
    tx.later(_SQL["count_numbers"], values)
    written = tx.all(_SQL["upsert_stage_returning"], values)
    before = _by_key(present())
    after = {**before, **_by_key(written)}
    if written:
        touch_sink(tx, call, sink, added=len(after) - len(before))
    return [(before.get(change.key), after[change.key]) for change in changes]


def fault_of(tx: Transaction, sink: StoredSink, changes: Sequence[Change], *, may_create: bool) -> Problem | None:
    """Return the first problem of `faults_of`, if there is one."""
    return next((problem for _, problem in faults_of(tx, sink, changes, may_create=may_create)), None)


def faults_of(
    tx: Transaction, sink: StoredSink, changes: Sequence[Change], *, may_create: bool
) -> Iterator[tuple[int, Problem]]:
    """Yield the index and the problem of each change that can't be applied.

    A new entry fails if its id is in use, or if ``may_create`` is false. An existing entry fails if it is protected. The id in
    a change of an existing entry is ignored. Changes that can't fail cause no query.
    """
    yield from _edits_of_protected(tx, sink, changes)
    doubtful = {change.key for change in changes if change.id} if may_create else {change.key for change in changes}
    if not doubtful:
        return
    present: dict[str, bool] = {}
    ids: set[str] = set()
    for index, change in enumerate(changes):
        key, entry_id, remove = change.key, change.id, change.remove
        if key not in doubtful:
            continue
        if key not in present:
            present[key] = bool(sink.entry_count) and find_entry(tx, sink, key) is not None
        if remove:
            present[key] = False
        elif not present[key]:
            if not may_create:
                yield (
                    index,
                    NotFoundProblem("entry_not_found", f"There is no entry '{key}', and create is false."),
                )
                continue
            if entry_id and (entry_id in ids or is_id_in_use(tx, entry_id)):
                yield index, ConflictProblem("id_in_use", f"The id of entry '{key}' is in use.")
                continue
            if entry_id:
                ids.add(entry_id)
            present[key] = True


def _edits_of_protected(tx: Transaction, sink: StoredSink, changes: Sequence[Change]) -> Iterator[tuple[int, Problem]]:
    if not (sink.protect_fed_entries and sink.entry_count):
        return
    present = entries_of(tx, sink, [change for change in changes if change.origin is None])
    found = [
        (index, present[change.key])
        for index, change in enumerate(changes)
        if is_refused(sink, change, present.get(change.key))
    ]
    origins = find_origins(tx, (entry.origin for _, entry in found))
    for index, entry in found:
        yield index, refusal(entry, origins)


def _without_repetitions(
    tx: Transaction, sink: StoredSink, changes: Sequence[Change]
) -> tuple[Sequence[Change], Tally]:
    """Return, for each key, the fewest changes with the same result, and the counts of the omitted changes."""
    if _all_different(changes):
        return changes, Tally()
    by_key: dict[str, list[Change]] = {}
    for change in changes:
        by_key.setdefault(change.key, []).append(change)
    repeated = {key: own for key, own in by_key.items() if len(own) > 1}
    before = entries_of(tx, sink, [own[0] for own in repeated.values()]) if sink.entry_count else {}
    least = [own[0] for own in by_key.values() if len(own) == 1]
    left_out = Tally()
    for key, own in repeated.items():
        needed, counts = least_of(own, before.get(key))
        least += needed
        left_out += counts - (least_of(needed, before.get(key))[1] if needed else Tally())
    return least, left_out


def _all_different(changes: Sequence[Change]) -> bool:
    return len(set(map(_BY_KEY, changes))) == len(changes)


def _with_stored_origins(
    tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change], origins: Sequence[ValueOrigin]
) -> tuple[Sequence[Change], int]:
    """Store the origins. Return the changes, and a number to add to the ``origin`` of each change before it is stored."""
    numbers = keep_origins(tx, sink, origins, now=call.now)
    if len(numbers) <= 1:  # the usual case: the changes, which may be thousands, are not copied
        return changes, origin_number(numbers[0], 0) if numbers else 0
    stored = []
    for change in changes:
        if change.origin is not None:
            position, row = split_origin(change.origin)
            change = change._replace(origin=origin_number(numbers[position], row))  # noqa: PLW2901
        stored.append(change)
    return stored, 0


def _stage(tx: Transaction, part: Sequence[Change], sink: StoredSink, *, has_origins: bool = False) -> Values:
    """Stage changes for the following statements. Return the values that each statement needs."""
    tx.later(_SQL["make_stage"])
    tx.later(_SQL["clear_stage"])
    if {change[3:6] for change in part} == {_PLAIN}:  # staging half of the columns takes a third of the time
        if has_origins:
            tx.load(_SQL["stage_with_origin"], list(map(_WITH_ORIGIN, part)))
        else:
            tx.load(_SQL["stage_plain"], [change[:3] for change in part])
    else:
        tx.load(_SQL["stage"], part)
    return {"sink": sink.number, "staged": JsonRows(part), "count": len(part)}


def _by_key(rows: Iterable[Row]) -> dict[str, StoredEntry]:
    return {row[2]: StoredEntry._make(row) for row in rows}


def _may_exceed(sink: StoredSink, added: int, limits: Limits) -> bool:
    """Whether the sink would have more entries than allowed if every change added an entry."""
    return bool(limits.entries_per_sink) and sink.entry_count + added > limits.entries_per_sink


def _compare(tx: Transaction, values: Values, accepted: int) -> tuple[Tally, int]:
    """Return the effects of the staged changes on existing entries, and the number of upserts of existing entries.

    On PostgreSQL, the same statement also writes the changes, so all checks must precede this call.
    """
    row = tx.one(_SQL["compare_stage"], values)
    stale, updates, same, removals, stale_upserts = row or (0, 0, 0, 0, 0)
    tally = Tally(accepted=accepted, updated=updates - same, unchanged=same + stale, deleted=removals, stale=stale)
    return tally, updates + stale_upserts


def _write_values(call: Call, staged: Values, origin_base: int) -> Values:
    """Return the values of the statements that write staged changes."""
    return {
        **staged,
        "default_data_type": DEFAULT_DATA_TYPE,
        "multiplier": ID_MULTIPLIER,
        "origin": origin_base,
        **call.authorship,
    }
