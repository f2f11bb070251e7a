"""Audit rows (contract G26) and domain events (contract H7) of changes of files."""

from __future__ import annotations

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent, Origin
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage import store
from workspaced.resources.cloud_storage.records import FileRecord, file_record, metadata_record
from workspaced.resources.cloud_storage.values import StoredFile
from workspaced.resources.recorded_change import changed_members, record_change
from workspaced.storage.port import ReadTransaction, Transaction

_FOLLOWING_MEMBERS = frozenset({"updated_at", "updated_by", "conversion"})
"""Members that do not count as changes of the file."""


def read_record(reader: ReadTransaction, file: StoredFile) -> FileRecord:
    """Return the record of a file."""
    return file_record(file, store.list_outputs(reader, file.version_number))


def emit_available(tx: Transaction, call: Call, *, before: FileRecord | None, after: StoredFile) -> None:
    """Record and emit that a file is available (``before`` None), or has another version."""
    if before is None:
        record_change(tx, call, after.workspace_id, _event(tx, "file.created", after), label=after.file_name)
    else:
        emit_updated(tx, call, before=before, after=after)


def emit_updated(tx: Transaction, call: Call, *, before: FileRecord, after: StoredFile) -> None:
    """Record and emit which members of a file changed."""
    previous = changed_members(before, read_record(tx, after), unless=_FOLLOWING_MEMBERS)
    record_change(tx, call, after.workspace_id, _event(tx, "file.updated", after, **previous), label=after.file_name)


def emit_deleted(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Record and emit the deletion of a file. Call this before the deletion."""
    record_change(tx, call, file.workspace_id, _event(tx, "file.deleted", file), label=file.file_name)


def emit_metadata(tx: Transaction, call: Call, *, before: StoredFile, after: StoredFile) -> None:
    """Record and emit that the metadata of a file was replaced."""
    event = DomainEvent(
        type="cloud_storage.metadata.updated",
        id=after.id,
        record=metadata_record(after),
        previous={"metadata": msgspec.Raw(before.metadata.encode())},
    )
    record_change(tx, call, after.workspace_id, event, label=after.file_name)


def emit_conversion(tx: Transaction, origin: Origin, verb: str, file: StoredFile) -> None:
    """Emit that a conversion started, succeeded or failed."""
    emit(tx, origin, file.workspace_id, _event(tx, f"conversion.{verb}", file))


def note_retry(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Record that another conversion was requested. The event is emitted when the conversion starts."""
    call.note(tx, "cloud_storage.conversion.retried", file.id, label=file.file_name, workspace_id=file.workspace_id)


def _event(tx: Transaction, kind: str, file: StoredFile, **previous: object) -> DomainEvent:
    return DomainEvent(type=f"cloud_storage.{kind}", id=file.id, record=read_record(tx, file), previous=previous)
