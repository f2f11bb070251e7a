"""Single entries in the database, and the numbers and ids of entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call
from workspaced.resources.data_sinks.origin_store import find_origins, keep_origins
from workspaced.resources.data_sinks.origins import ValueOrigin, origin_number
from workspaced.resources.data_sinks.protection import is_refused, refusal
from workspaced.resources.data_sinks.rules import SingleDataSinkEntry
from workspaced.resources.data_sinks.sink_address import ID_MULTIPLIER, row_number
from workspaced.resources.data_sinks.values import (
    DEFAULT_DATA_TYPE,
    SINKS,
    Change,
    StoredEntry,
    StoredSink,
)
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.data_sinks", "queries.sql")
CHUNK_ROWS = 1_000


def find_entry(reader: ReadTransaction, sink: StoredSink, key: str) -> StoredEntry | None:
    """Return the entry with this key, if there is one."""
    row = reader.one(_SQL["find_entry"], {"sink": sink.number, "key": key})
    return StoredEntry._make(row) if row else None


def get_entry(reader: ReadTransaction, sink: StoredSink, segment: str) -> StoredEntry:
    """Return the entry with this path segment as its key or, if no entry has this key, as its id (contract S7).

    Raises:
        NotFoundProblem: no entry has this key or id.
    """
    found = find_entry(reader, sink, segment)
    entry_id = None if found else as_uuid(segment)
    if entry_id:
        owner = owner_of_id(reader, entry_id)
        if owner and owner[1] == sink.number and not owner[3]:
            found = find_entry(reader, sink, owner[2])
    if found is None:
        raise NotFoundProblem("entry_not_found", "There is no such entry in this data sink.")
    return found


def read_id_offset(reader: ReadTransaction) -> int:
    """Return the offset that this database uses in the digits of entry ids."""
    return int(reader.existing(_SQL["read_id_offset"])[0])


def owner_of_id(reader: ReadTransaction, entry_id: str) -> Row | None:
    """Return the entry with this id as (number, sink number, key, whether the sink is deleted), or None."""
    number = row_number(entry_id, id_offset=read_id_offset(reader))
    return reader.one(_SQL["find_entry_number_by_id"], {"id": entry_id, "number": number})


def is_id_in_use(tx: Transaction, entry_id: str) -> bool:
    """Whether an entry has this id. An entry of a deleted sink does not count: this call deletes it."""
    owner = owner_of_id(tx, entry_id)
    if owner and owner[3]:
        tx.run(_SQL["delete_entry"], {"number": owner[0]})
        return False
    return owner is not None


def entry_chunks(reader: ReadTransaction, sink: StoredSink) -> Iterator[list[Row]]:
    """Return all entries in the order of creation, in chunks. The columns of a row are in the order of `StoredEntry`."""
    return reader.chunks(_SQL["list_entries"], {"sink": sink.number}, CHUNK_ROWS)


def take_numbers(tx: Transaction, count: int) -> tuple[int, int]:
    """Reserve numbers for ``count`` entries. Return the number before the first reserved number, and the id offset."""
    row = tx.existing(_SQL["take_numbers"], {"count": count})
    return row[0] - count, row[1]


def touch_sink(tx: Transaction, call: Call, sink: StoredSink, *, added: int) -> None:
    """Update the row of a sink after a write to its entries. ``added``: the change of the entry count."""
    tx.later(_SQL["touch_sink"], {"number": sink.number, "added": added, **call.authorship})
    tx.notify(SINKS)


def require_room(sink: StoredSink, added: int, limits: Limits) -> None:
    """Check the quota of entries. Raises ConflictProblem: the sink would have more entries than allowed."""
    if added > 0 and limits.entries_per_sink and sink.entry_count + added > limits.entries_per_sink:
        raise ConflictProblem("quota_exceeded", f"A data sink may have {limits.entries_per_sink} entries.")


def create_entry(tx: Transaction, call: Call, sink: StoredSink, new: SingleDataSinkEntry) -> StoredEntry:
    """Insert an entry, and return it. Raises ConflictProblem: the key or the id is in use, or the quota is reached."""
    if existing := find_entry(tx, sink, new.key):
        raise ConflictProblem(
            "duplicate_key", "This data sink has an entry with this key already.", existingId=existing.id
        )
    change, origin = new.as_change(), new.origin
    if origin is None:
        return upsert_entry(tx, call, sink, change, None)
    return upsert_entry(tx, call, sink, change._replace(origin=origin.row), None, origin=origin.shared())


def upsert_entry(
    tx: Transaction,
    call: Call,
    sink: StoredSink,
    change: Change,
    existing: StoredEntry | None,
    *,
    origin: ValueOrigin | None = None,
) -> StoredEntry:
    """Insert an entry, or update ``existing``. An observation before the stored observation changes nothing (contract M6).

    ``origin``: the origin of the value, without the row. The row is ``change.origin``.

    Raises:
        ConflictProblem: the id is in use, or the quota is reached.
        UnprocessableProblem: the sink protects the entry.
    """
    _require_unprotected(tx, sink, change, existing)
    key, value, data_type, entry_id, observed_at, _, row = change
    if existing is None:
        require_room(sink, 1, call.settings.limits)
        if entry_id and is_id_in_use(tx, entry_id):
            raise ConflictProblem("id_in_use", "This id is in use.")
        before, id_offset = take_numbers(tx, 1)
        number: int | None = before + 1
    else:
        number, id_offset = None, 0
    found = tx.one(
        _SQL["upsert_entry"],
        {
            "number": number,
            "sink": sink.number,
            "key": key,
            "value": value,
            "data_type": data_type,
            "default_data_type": DEFAULT_DATA_TYPE,
            "id": entry_id,
            "observed_at": observed_at,
            "multiplier": ID_MULTIPLIER,
            "id_offset": id_offset,
            "origin": origin_number(keep_origins(tx, sink, [origin], now=call.now)[0], row or 0) if origin else None,
            **call.authorship,
        },
    )
    if found is not None:
        touch_sink(tx, call, sink, added=0 if existing else 1)
        return StoredEntry._make(found)
    if existing is None:
        raise LookupError(f"entry '{key}' was neither inserted nor updated")
    return existing


def update_entry(
    tx: Transaction, call: Call, sink: StoredSink, entry: StoredEntry, changes: Mapping[str, str | None]
) -> StoredEntry:
    """Write the members in ``changes``, and return the entry. If ``changes`` is empty, nothing is written (contract S11).

    Raises:
        UnprocessableProblem: the sink protects the entry.
    """
    if not changes:
        return entry
    members = {"value": entry.value, "data_type": entry.data_type, **changes}
    change = Change(entry.key, members["value"], members["data_type"], None, None, remove=False)
    _require_unprotected(tx, sink, change, entry)
    tx.later(_SQL["update_entry"], {**members, "number": entry.number, **call.authorship})
    touch_sink(tx, call, sink, added=0)
    return get_entry(tx, sink, entry.key)


def delete_entry(tx: Transaction, call: Call, sink: StoredSink, entry: StoredEntry) -> None:
    """Delete an entry. Raises UnprocessableProblem: the sink protects the entry."""
    _require_unprotected(tx, sink, Change(entry.key, None, None, None, None, remove=True), entry)
    tx.later(_SQL["delete_entry"], {"number": entry.number})
    touch_sink(tx, call, sink, added=-1)


def _require_unprotected(reader: ReadTransaction, sink: StoredSink, change: Change, before: StoredEntry | None) -> None:
    if before is not None and is_refused(sink, change, before):
        raise refusal(before, find_origins(reader, [before.origin]))
