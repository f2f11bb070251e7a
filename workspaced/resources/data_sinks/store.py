"""Data sinks in the database. Every statement names the workspace (contract G15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.http.operations import Call
from workspaced.resources.data_sinks.history_store import remove_changes
from workspaced.resources.data_sinks.mass_store import apply_changes, fault_of
from workspaced.resources.data_sinks.origins import entry_origins
from workspaced.resources.data_sinks.rules import NewDataSink
from workspaced.resources.data_sinks.sink_address import SinkName
from workspaced.resources.data_sinks.values import DELETED_SINKS, SINKS, StoredSink
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.data_sinks", "queries.sql")


def get_sink(reader: ReadTransaction, workspace_id: str, name: SinkName | None) -> StoredSink:
    """Return the sink with this name in the workspace. Raises NotFoundProblem: there is no such sink."""
    row = None
    if name and name.id:
        row = reader.one(_SQL["find_sink_by_id"], {"workspace_id": workspace_id, "id": name.id})
    elif name:
        row = reader.one(_SQL["find_sink_by_serial"], {"workspace_id": workspace_id, "serial": name.serial})
    if row is None:
        raise NotFoundProblem("data_sink_not_found", "There is no such data sink in this workspace.")
    return StoredSink._make(row)


def list_sinks(reader: ReadTransaction, workspace_id: str) -> list[StoredSink]:
    """Return every sink of a workspace, sorted by serial. Raises NotFoundProblem: there is no such workspace."""
    rows = reader.all(_SQL["list_sinks"], {"workspace_id": workspace_id})
    if not rows and not reader.one(_SQL["workspace_is_there"], {"workspace_id": workspace_id}):
        raise _no_workspace()
    return [StoredSink._make(row) for row in rows]


def create_sink(tx: Transaction, call: Call, new: NewDataSink, *, sink_id: str) -> StoredSink:
    """Insert a sink with its entries, and return it.

    Raises:
        NotFoundProblem: there is no such workspace.
        ConflictProblem: an id is in use, or a quota is reached.
        Invalid: the origins do not fit the entries.
    """
    taken = tx.one(_SQL["take_serial"], {"workspace_id": call.workspace_id})
    if taken is None:
        raise _no_workspace()
    workspace, serial, count = taken
    if tx.one(_SQL["sink_id_in_use"], {"id": sink_id}):
        raise ConflictProblem("id_in_use", "This id is in use.")
    most = call.settings.limits.sinks_per_workspace
    if most and count > most:
        raise ConflictProblem("quota_exceeded", f"A workspace may have {most} data sinks.")
    tx.run(
        _SQL["insert_sink"],
        {
            "id": sink_id,
            "workspace": workspace,
            "serial": serial,
            "label": new.label,
            "description": new.description,
            "tags": new.tags,
            "icon": new.icon,
            "protect_fed_entries": int(new.protect_fed_entries),
            **call.authorship,
        },
    )
    name = SinkName(id=sink_id)
    sink = get_sink(tx, call.workspace_id, name)
    if not new.entries:
        return sink
    origins, numbers = entry_origins(new.origins, len(new.entries))
    changes = [entry.as_change()._replace(origin=origin) for entry, origin in zip(new.entries, numbers, strict=True)]
    if fault := fault_of(tx, sink, changes, may_create=True):
        raise fault
    apply_changes(tx, call, sink, changes, origins)
    return get_sink(tx, call.workspace_id, name)


def update_sink(tx: Transaction, call: Call, sink: StoredSink, changes: Mapping[str, Any]) -> None:
    """Write the members in ``changes``. If ``changes`` is empty, nothing is written (contract S11)."""
    if not changes:
        return
    members = {**sink._asdict(), **changes}
    protects = int(members["protect_fed_entries"])
    tx.run(_SQL["update_sink"], {**members, "protect_fed_entries": protects, **call.authorship})
    tx.notify(SINKS)


def delete_sink(tx: Transaction, sink: StoredSink) -> None:
    """Hide a sink from every request. `remove_deleted` removes its rows later. Its serial is not used again."""
    tx.run(_SQL["delete_sink"], {"number": sink.number})
    tx.run(_SQL["count_sink_out"], {"workspace_id": sink.workspace_id})
    tx.notify(SINKS)
    tx.notify(DELETED_SINKS)


def any_deleted(reader: ReadTransaction) -> bool:
    """Whether `remove_deleted` has rows to remove."""
    return reader.one(_SQL["any_deleted_sink"]) is not None


def remove_deleted(tx: Transaction, most: int) -> int:
    """Remove up to ``most`` rows of deleted sinks. Return how many; 0 if another process removes rows."""
    if tx.one(_SQL["queue_for_removal"]) is None:
        return 0
    return _remove(tx, tx.one(_SQL["deleted_sink"]), most)


def purge(tx: Transaction, workspace: int, most: int) -> int:
    """Remove up to ``most`` rows of a workspace that is being purged. Return how many; 0: no row is left."""
    deleted = tx.run(_SQL["delete_sinks_of_workspace"], {"workspace": workspace, "most": most})
    return deleted or _remove(tx, tx.one(_SQL["deleted_sink_of_workspace"], {"workspace": workspace}), most)


def _remove(tx: Transaction, sink: Row | None, most: int) -> int:
    if sink is None:
        return 0
    number, removed_to = sink
    removed = tx.all(_SQL["remove_entries"], {"sink": number, "after": removed_to, "most": most})
    if len(removed) == most:
        tx.run(_SQL["note_removal"], {"sink": number, "number": max(row[0] for row in removed)})
        return most
    done = len(removed) + remove_changes(tx, number, most - len(removed))
    return most if done == most else done + tx.run(_SQL["remove_sink"], {"sink": number})


def _no_workspace() -> NotFoundProblem:
    return NotFoundProblem("workspace_not_found", "There is no such workspace.")
