"""Files as records (contract CS1, CS2, CS3, CS4), and get, list and version-list beside them (contract C2, C11)."""

from __future__ import annotations

from typing import Final

from ingestd.wire import names
from workspaced.core.members import read_changes
from workspaced.core.problems import ForbiddenProblem, UnauthenticatedProblem
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.pagination import read_page
from workspaced.http.responses import NO_CONTENT, Response, etag, json_response
from workspaced.resources.cloud_storage import conversion_store, events, permission, store
from workspaced.resources.cloud_storage.records import FileRecord, FileVersionRecord, version_record
from workspaced.resources.cloud_storage.rules import FileChanges, read_metadata, read_workspace_id, type_of
from workspaced.resources.cloud_storage.upload_routes import COLLECTION
from workspaced.resources.cloud_storage.values import StoredFile, StoredVersion
from workspaced.resources.operation_rows import read_operation, write_operation
from workspaced.security.permissions import FILES_READ, FILES_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

_ONE = f"{COLLECTION}/{{file}}"
_METADATA = f"{COLLECTION}/metadata/{{file}}"
_FIELDS: Final = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "fileName": "file_name",
    "size": "size",
    "id": "id",
}
_VERSION_FIELDS: Final = {"version": "ordinal", "createdAt": "created_at", "size": "size"}
SORTABLE: Final = frozenset(_FIELDS)
SORTABLE_VERSIONS: Final = frozenset(_VERSION_FIELDS)


def delete_file(call: Call) -> Work:
    """Delete a file (contract CS1): soft. The query names the workspace, which must be the file's (contract C5)."""
    workspace_id = read_workspace_id(call.query)

    def act(tx: Transaction) -> Response:
        file = permission.writable_file(tx, call)
        if file.workspace_id != workspace_id:
            raise ForbiddenProblem
        call.require_match(file.version)
        events.emit_deleted(tx, call, file)
        store.delete_file(tx, file, actor=call.actor, now=call.now)
        tx.notify(conversion_store.CONVERSIONS)  # one under way is stopped
        return NO_CONTENT

    return Work(act=act)


def update_file(call: Call) -> Work:
    """Update the storage information of a file (contract CS2). No body at all is an empty one (contract C3)."""
    given, ignored = read_changes(FileChanges, call.json() if call.body else {}, call.settings.limits)

    def act(tx: Transaction) -> Response:
        file = permission.writable_file(tx, call)
        call.require_match(file.version)
        wanted = dict(given)
        if "content_type" in wanted and wanted["content_type"] is None:
            wanted["content_type"] = type_of(wanted.get("file_name") or file.file_name)
        changed = {name: value for name, value in wanted.items() if getattr(file, name) != value}
        if changed:
            before = events.shown(tx, file)
            after = store.update_file(tx, file, changed, actor=call.actor, now=call.now)
            events.emit_updated(tx, call, before=before, after=after)
        return NO_CONTENT

    return Work(act=act, ignored=ignored)


async def get_metadata(call: Call) -> Response:
    """Get the metadata of a file (contract CS3)."""
    file = await call.store.read(lambda reader: permission.readable_file(reader, call))
    if call.has_seen(file.version):
        return Response(status=304, headers=(etag(file.version),))
    headers = (("Content-Type", names.JSON), etag(file.version))
    return Response(status=200, headers=headers, body=file.metadata.encode())


def replace_metadata(call: Call) -> Work:
    """Replace the metadata of a file (contract CS4): whole; no body at all leaves it (contract C4)."""
    metadata = read_metadata(call.json(), call.settings.limits) if call.body else None

    def act(tx: Transaction) -> Response:
        file = permission.writable_file(tx, call)
        call.require_match(file.version)
        if metadata not in {None, file.metadata}:
            after = store.update_metadata(tx, file, metadata or "{}", actor=call.actor, now=call.now)
            events.emit_metadata(tx, call, before=file, after=after)
        return NO_CONTENT

    return Work(act=act)


async def get_file(call: Call) -> Response:
    """The storage information; also of a file that is still to be uploaded, for whoever uploads it."""

    def question(reader: ReadTransaction) -> tuple[StoredFile, FileRecord]:
        file = permission.readable_file(reader, call, uploading=True)
        return file, events.shown(reader, file)

    file, record = await call.store.read(question)
    if call.has_seen(file.version):
        return Response(status=304, headers=(etag(file.version),))
    return json_response(record, headers=(etag(file.version),))


async def list_files(call: Call) -> Response:
    """The available files of the workspace in the query, oldest first unless another order is asked for."""

    def question(reader: ReadTransaction) -> tuple[int, list[FileRecord]]:
        home = permission.readable_home(reader, call, workspace_id)
        found = store.list_files(reader, home)
        if page.sorted_by:
            found.sort(key=lambda file: (getattr(file, _FIELDS[page.sorted_by]), file.id))
        if page.descending:
            found.reverse()
        stretch = page.of(found)
        return len(found), [events.shown(reader, file) for file in stretch]

    if call.principal is None and as_uuid(call.query.get("workspaceId", "")) is None:
        raise UnauthenticatedProblem  # before anything is said about the request
    workspace_id = read_workspace_id(call.query)
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=SORTABLE)
    total, records = await call.store.read(question)
    return json_response(records, headers=page.headers(total=total, path=call.path, query=call.query))


async def list_versions(call: Call) -> Response:
    """The versions of a file, the newest first unless another order is asked for."""
    page = read_page(call.query, longest=call.settings.limits.page_length, sortable=SORTABLE_VERSIONS)

    def question(reader: ReadTransaction) -> tuple[int, list[FileVersionRecord]]:
        file = permission.readable_file(reader, call)
        found = store.list_versions(reader, file)
        if page.sorted_by:
            found.sort(key=lambda version: _sort_key(version, page.sorted_by), reverse=page.descending)
        elif "sortOrder" in call.query and not page.descending:
            found.reverse()
        stretch = page.of(found)
        return len(found), [
            version_record(version, current=version.ordinal == file.current_version) for version in stretch
        ]

    total, records = await call.store.read(question)
    return json_response(records, headers=page.headers(total=total, path=call.path, query=call.query))


def _sort_key(version: StoredVersion, member: str) -> tuple[int, int]:
    return getattr(version, _VERSION_FIELDS[member]), version.ordinal


def operations(limits: Limits) -> tuple[Operation, ...]:
    """The table's rows."""
    small = limits.body_bytes
    return (
        write_operation("cloud_storage.delete", "DELETE", _ONE, FILES_WRITE, delete_file, anywhere=True),
        write_operation(
            "cloud_storage.update", "PATCH", _ONE, FILES_WRITE, update_file, anywhere=True, body_bytes=small
        ),
        read_operation(
            "cloud_storage.get_metadata", _METADATA, FILES_READ, get_metadata, anywhere=True, anonymous=True
        ),
        write_operation(
            "cloud_storage.replace_metadata",
            "PUT",
            _METADATA,
            FILES_WRITE,
            replace_metadata,
            anywhere=True,
            body_bytes=small,
        ),
        read_operation("cloud_storage.get", _ONE, FILES_READ, get_file, anywhere=True, anonymous=True),
        read_operation("cloud_storage.list", COLLECTION, FILES_READ, list_files, anywhere=True, anonymous=True),
        read_operation(
            "cloud_storage.list_versions",
            f"{COLLECTION}/version-list/{{file}}",
            FILES_READ,
            list_versions,
            anywhere=True,
            anonymous=True,
        ),
    )
