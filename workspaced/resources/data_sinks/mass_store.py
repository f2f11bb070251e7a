"""Mass updates in the database: set-based SQL with a staging table (contract M3, M4, M5, M6, M8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from workspaced.core.problems import ConflictProblem, NotFoundProblem, Problem
from workspaced.http.operations import Call
from workspaced.resources.data_sinks.change_effects import least_of
from workspaced.resources.data_sinks.entry_store import find_entry, is_id_in_use, require_room, take_numbers, touch_sink
from workspaced.resources.data_sinks.history_store import open_history, record_staged
from workspaced.resources.data_sinks.origin_store import keep_origin
from workspaced.resources.data_sinks.origins import ValueOrigin, origin_number, split_origin
from workspaced.resources.data_sinks.sink_address import ID_MULTIPLIER
from workspaced.resources.data_sinks.values import DEFAULT_DATA_TYPE, Change, StoredEntry, StoredSink, Tally
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.data_sinks", "queries.sql")
_BY_KEY = itemgetter(0)  # a third of the time of an access by name
_PLAIN = (None, None, False)
"""The fields 3 to 5 of a change without an id, an observation and a removal."""
_WITH_ORIGIN = itemgetter(0, 1, 2, 6)


def in_key_order(changes: Sequence[Change]) -> list[Change]:
    """Return the changes sorted by key, with the changes of a key in their order: `apply_changes` gives the same result.

    Sorting before the transaction shortens it.
    """
    return sorted(changes, key=_BY_KEY)


def rounds(changes: Sequence[Change]) -> list[list[Change]]:
    """Split the changes into rounds, which are applied in turn. In a round each key occurs once.

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
    """Apply all changes in order, record them in the history of the sink if it has one, and update the sink.

    The origins of the changes are positions in ``origins``.

    Raises:
        ConflictProblem: the quota is reached; the caller must roll back the transaction.
    """
    changes, base = _with_stored_origins(tx, call, sink, changes, origins)
    least, total = _without_repetitions(tx, sink, changes)
    has_history = open_history(tx, call, sink)
    for turn, part in enumerate(rounds(least) if least else ()):
        _stage(tx, part, has_origins=bool(origins))
        effects = Tally(accepted=len(part))
        upserts = sum(1 for change in part if not change.remove)
        existing = 0
        if sink.entry_count or turn:
            effects, existing = _compare(tx, sink, len(part))
            if any(change.data_type is None for change in part):
                tx.run(_SQL["keep_data_types"], {"sink": sink.number})
        created = upserts - existing
        added = created - effects.deleted
        require_room(sink, total.created - total.deleted + added, call.settings.limits)
        if has_history:
            record_staged(tx, call, sink)
        if upserts:
            _upsert(tx, call, sink, len(part), base)
        if effects.deleted:
            tx.run(_SQL["delete_stage"], {"sink": sink.number})
        total += effects + Tally(created=created)
    if total.touched:
        touch_sink(tx, call, sink, added=total.created - total.deleted)
    return total


def entries_of(tx: Transaction, sink: StoredSink, changes: Sequence[Change]) -> Mapping[str, StoredEntry]:
    """Return the present entries of the keys of the changes."""
    keys = dict.fromkeys(change.key for change in changes)
    _stage(tx, [Change(key, None, None, None, None, remove=False) for key in sorted(keys)])
    return _staged_entries(tx, sink)


def upsert_each(
    tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change], origins: Sequence[ValueOrigin] = ()
) -> list[tuple[StoredEntry | None, StoredEntry]]:
    """Write entries with different keys and no given ids. Return each before and after, in their order.

    An older observation changes nothing (contract M6). The origins of the changes are positions in ``origins``.
    """
    changes, base = _with_stored_origins(tx, call, sink, changes, origins)
    _stage(tx, in_key_order(changes), has_origins=bool(origins))
    before = _staged_entries(tx, sink) if sink.entry_count else {}
    if any(change.data_type is None for change in changes):
        tx.run(_SQL["keep_data_types"], {"sink": sink.number})
    _upsert(tx, call, sink, len(changes), base)
    after = _staged_entries(tx, sink)
    states = [(before.get(change.key), after[change.key]) for change in changes]
    if any(former is None or former.version != entry.version for former, entry in states):
        touch_sink(tx, call, sink, added=len(after) - len(before))
    return states


def fault_of(tx: Transaction, sink: StoredSink, changes: Sequence[Change], *, may_create: bool) -> Problem | None:
    """Return the first problem of `faults_of`, if there is one."""
    return next((problem for _, problem in faults_of(tx, sink, changes, may_create=may_create)), None)


def faults_of(
    tx: Transaction, sink: StoredSink, changes: Sequence[Change], *, may_create: bool
) -> Iterator[tuple[int, Problem]]:
    """Yield the indexes of changes that can't be applied: the id is in use, or creation is not allowed.

    The id of a change of an existing entry is ignored. Changes that can't fail cause no query.
    """
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
            present[key] = _is_there(tx, sink, key)
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


def _without_repetitions(
    tx: Transaction, sink: StoredSink, changes: Sequence[Change]
) -> tuple[Sequence[Change], Tally]:
    """Return the fewest changes of each key with the same result, and the counts of what is left out."""
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


def _is_there(reader: ReadTransaction, sink: StoredSink, key: str) -> bool:
    return bool(sink.entry_count) and find_entry(reader, sink, key) is not None


def _with_stored_origins(
    tx: Transaction, call: Call, sink: StoredSink, changes: Sequence[Change], origins: Sequence[ValueOrigin]
) -> tuple[Sequence[Change], int]:
    """Store the origins. Return the changes with origins as entries have them, after adding the returned number to each."""
    numbers = [keep_origin(tx, sink, origin, now=call.now) for origin in origins]
    if len(numbers) <= 1:  # so the thousands of changes of a usual request stay as they are
        return changes, origin_number(numbers[0], 0) if numbers else 0
    stored = []
    for change in changes:
        if change.origin is not None:
            position, row = split_origin(change.origin)
            change = change._replace(origin=origin_number(numbers[position], row))  # noqa: PLW2901
        stored.append(change)
    return stored, 0


def _stage(tx: Transaction, part: Sequence[Change], *, has_origins: bool = False) -> None:
    tx.run(_SQL["make_stage"])
    tx.run(_SQL["clear_stage"])
    if {change[3:6] for change in part} == {_PLAIN}:  # half the columns take a third of the time
        if has_origins:
            tx.load(_SQL["stage_with_origin"], list(map(_WITH_ORIGIN, part)))
        else:
            tx.load(_SQL["stage_plain"], [change[:3] for change in part])
    else:
        tx.load(_SQL["stage"], part)


def _staged_entries(tx: Transaction, sink: StoredSink) -> Mapping[str, StoredEntry]:
    """Return the present entries of the staged keys."""
    rows = tx.all(_SQL["entries_of_stage"], {"sink": sink.number})
    return {row[2]: StoredEntry._make(row) for row in rows}


def _compare(tx: Transaction, sink: StoredSink, accepted: int) -> tuple[Tally, int]:
    """Return the effects of the staged changes on existing entries, and the number of upserts of these."""
    row = tx.one(_SQL["compare_stage"], {"sink": sink.number})
    stale, updates, same, removals, stale_upserts = row or (0, 0, 0, 0, 0)
    tally = Tally(accepted=accepted, updated=updates - same, unchanged=same + stale, deleted=removals, stale=stale)
    return tally, updates + stale_upserts


def _upsert(tx: Transaction, call: Call, sink: StoredSink, count: int, origin_base: int) -> None:
    before, id_offset = take_numbers(tx, count)
    tx.run(
        _SQL["upsert_stage"],
        {
            "before": before,
            "sink": sink.number,
            "default_data_type": DEFAULT_DATA_TYPE,
            "multiplier": ID_MULTIPLIER,
            "id_offset": id_offset,
            "origin": origin_base,
            **call.authorship,
        },
    )
