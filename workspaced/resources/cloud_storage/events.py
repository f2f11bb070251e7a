"""What changes of files are in the audit log (contract G26) and as events (contract H7)."""

from __future__ import annotations

from typing import Any

import msgspec

from workspaced.events.outbox import emit
from workspaced.events.payload import DomainEvent, Origin
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage import store
from workspaced.resources.cloud_storage.records import FileRecord, file_record, metadata_record
from workspaced.resources.cloud_storage.values import StoredFile
from workspaced.security.audit_log import AuditAction
from workspaced.storage.port import ReadTransaction, Transaction

_NOTHING_BY_THEMSELVES = frozenset({"updatedAt", "updatedBy", "conversion"})


def shown(reader: ReadTransaction, file: StoredFile) -> FileRecord:
    """The record of a file."""
    return file_record(file, store.list_outputs(reader, file.version_number))


def emit_available(tx: Transaction, call: Call, *, before: FileRecord | None, after: StoredFile) -> None:
    """Something was uploaded: a file is there (``before`` None), or another version of it."""
    if before is None:
        call.note(tx, _deed("file.created", after))
        _emit(tx, call, "file.created", after)
    else:
        emit_updated(tx, call, before=before, after=after)


def emit_updated(tx: Transaction, call: Call, *, before: FileRecord, after: StoredFile) -> None:
    """A file's record changed."""
    former, now = _plain(before), _plain(shown(tx, after))
    previous = {name: was for name, was in former.items() if name not in _NOTHING_BY_THEMSELVES and was != now[name]}
    call.note(tx, _deed("file.updated", after, *previous))
    _emit(tx, call, "file.updated", after, **previous)


def emit_deleted(tx: Transaction, call: Call, file: StoredFile) -> None:
    """A file that is about to be as absent."""
    call.note(tx, _deed("file.deleted", file))
    _emit(tx, call, "file.deleted", file)


def emit_metadata(tx: Transaction, call: Call, *, before: StoredFile, after: StoredFile) -> None:
    """The metadata of a file was replaced."""
    call.note(tx, _deed("metadata.updated", after, "metadata"))
    event = DomainEvent(
        type="cloud_storage.metadata.updated",
        id=after.id,
        record=metadata_record(after),
        previous={"metadata": msgspec.Raw(before.metadata.encode())},
    )
    emit(tx, call, after.workspace_id, event)


def emit_conversion(tx: Transaction, origin: Origin, verb: str, file: StoredFile) -> None:
    """A conversion started, succeeded or failed."""
    _emit(tx, origin, f"conversion.{verb}", file)


def note_retry(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Somebody asked for a conversion to be done again; that it starts is told when it does."""
    call.note(tx, _deed("conversion.retried", file))


def _deed(action: str, file: StoredFile, *changed: str) -> AuditAction:
    return AuditAction(
        action=f"cloud_storage.{action}", resource_id=file.id, workspace_id=file.workspace_id, changed=changed
    )


def _emit(tx: Transaction, origin: Origin, kind: str, file: StoredFile, **previous: object) -> None:
    event = DomainEvent(type=f"cloud_storage.{kind}", id=file.id, record=shown(tx, file), previous=previous)
    emit(tx, origin, file.workspace_id, event)


def _plain(record: FileRecord) -> dict[str, Any]:
    return dict(msgspec.to_builtins(record))
