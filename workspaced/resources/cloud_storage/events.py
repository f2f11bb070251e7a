"""Audit rows (contract G26) and domain events (contract H7) of changes of files."""

from __future__ import annotations

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent, Origin
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage import store
from workspaced.resources.cloud_storage.records import FileRecord, file_record, metadata_record
from workspaced.resources.cloud_storage.values import StoredFile
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import ReadTransaction, Transaction

_FOLLOWING_MEMBERS = frozenset({"updatedAt", "updatedBy", "conversion"})
"""Members that do not count as changes of the file."""


def read_record(reader: ReadTransaction, file: StoredFile) -> FileRecord:
    """Return the record of a file."""
    return file_record(file, store.list_outputs(reader, file.version_number))


def emit_available(tx: Transaction, call: Call, *, before: FileRecord | None, after: StoredFile) -> None:
    """Record and emit that a file is available (``before`` None), or has another version."""
    if before is None:
        _note(tx, call, "file.created", after)
        _emit(tx, call, "file.created", after)
    else:
        emit_updated(tx, call, before=before, after=after)


def emit_updated(tx: Transaction, call: Call, *, before: FileRecord, after: StoredFile) -> None:
    """Record and emit the members of a file that changed."""
    old, new = (msgspec.to_builtins(record) for record in (before, read_record(tx, after)))
    previous = {name: value for name, value in old.items() if name not in _FOLLOWING_MEMBERS and value != new[name]}
    _note(tx, call, "file.updated", after, *previous)
    _emit(tx, call, "file.updated", after, **previous)


def emit_deleted(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Record and emit that a file is deleted, before it is."""
    _note(tx, call, "file.deleted", file)
    _emit(tx, call, "file.deleted", file)


def emit_metadata(tx: Transaction, call: Call, *, before: StoredFile, after: StoredFile) -> None:
    """Record and emit that the metadata of a file was replaced."""
    _note(tx, call, "metadata.updated", after, "metadata")
    event = DomainEvent(
        type="cloud_storage.metadata.updated",
        id=after.id,
        record=metadata_record(after),
        previous={"metadata": msgspec.Raw(before.metadata.encode())},
    )
    emit(tx, call, after.workspace_id, event)


def emit_conversion(tx: Transaction, origin: Origin, verb: str, file: StoredFile) -> None:
    """Emit that a conversion started, succeeded or failed."""
    _emit(tx, origin, f"conversion.{verb}", file)


def note_retry(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Record that another conversion was requested; the event follows when it starts."""
    _note(tx, call, "conversion.retried", file)


def _note(tx: Transaction, call: Call, kind: str, file: StoredFile, *changed: str) -> None:
    kind = f"cloud_storage.{kind}"
    call.note(tx, AuditAction(action=kind, resource_id=file.id, workspace_id=file.workspace_id, changed=changed))


def _emit(tx: Transaction, origin: Origin, kind: str, file: StoredFile, **previous: object) -> None:
    event = DomainEvent(type=f"cloud_storage.{kind}", id=file.id, record=read_record(tx, file), previous=previous)
    emit(tx, origin, file.workspace_id, event)
