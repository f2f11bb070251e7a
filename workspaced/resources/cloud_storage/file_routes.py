"""The operations of stored files (contract CS1, CS2, CS3, CS4, CS5, C2, C11)."""

from __future__ import annotations

from typing import Final

from ingestd.wire import names
from workspaced.core.json_schema import OBJECT, ref
from workspaced.core.problems import ForbiddenProblem
from workspaced.core.text import as_uuid
from workspaced.http.description import RequestBody, Success, listed
from workspaced.http.openapi.shared import paging
from workspaced.http.operations import Call, Operation, Work
from workspaced.http.responses import NO_CONTENT, Response, etag
from workspaced.resources.cloud_storage import conversion_store, events, permission, store
from workspaced.resources.cloud_storage.records import FileRecord, FileVersionRecord, version_record
from workspaced.resources.cloud_storage.rules import (
    ConversionRetry,
    FileChanges,
    read_metadata,
    read_workspace_id,
    type_of,
)
from workspaced.resources.cloud_storage.upload_routes import COLLECTION, OF_WORKSPACE
from workspaced.resources.operation_rows import delete, get, patch, post, put
from workspaced.resources.read_responses import list_response, read_list_page, select_page, versioned_response
from workspaced.security.permissions import FILES_READ, FILES_WRITE
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

_ONE = f"{COLLECTION}/{{file}}"
_METADATA = f"{COLLECTION}/metadata/{{file}}"
SORTABLE: Final = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "fileName": "file_name",
    "size": "size",
    "id": "id",
}
SORTABLE_VERSIONS: Final = {"version": "ordinal", "createdAt": "created_at", "size": "size"}


def delete_file(tx: Transaction, call: Call) -> Response:
    """Delete a file (contract CS1, C5).

    The query must name the file's workspace.
    200: It is deleted.
    """
    workspace_id = read_workspace_id(call.query)
    file = permission.writable_file(tx, call)
    if file.workspace_id != workspace_id:
        raise ForbiddenProblem
    call.require_match(file.version)
    events.emit_deleted(tx, call, file)
    store.delete_file(tx, call, file)
    tx.notify(conversion_store.CONVERSIONS)  # a conversion in progress stops
    return NO_CONTENT


def update_file(tx: Transaction, call: Call, changes: FileChanges) -> Response:
    """Change a file's storage information (contract CS2, C3).

    Only the given members change.
    200: Done.
    """
    file = permission.writable_file(tx, call)
    call.require_match(file.version)
    wanted = changes.given()
    if "content_type" in wanted and wanted["content_type"] is None:
        wanted["content_type"] = type_of(wanted.get("file_name") or file.file_name)
    changed = {name: value for name, value in wanted.items() if getattr(file, name) != value}
    if changed:
        before = events.read_record(tx, file)
        after = store.update_file(tx, call, file, changed)
        events.emit_updated(tx, call, before=before, after=after)
    return NO_CONTENT


async def get_metadata(call: Call) -> Response:
    """Get a file's metadata (contract CS3).

    The object that users store with the file; `{}` at first.
    200: The metadata.
    """
    file = await call.store.read(lambda reader: permission.readable_file(reader, call))
    if call.has_seen(file.version):
        return Response(status=304, headers=(etag(file.version),))
    headers = (("Content-Type", names.JSON), etag(file.version))
    return Response(status=200, headers=headers, body=file.metadata.encode())


def replace_metadata(call: Call) -> Work:
    """Replace a file's metadata (contract CS4, C4).

    Replaces the whole object. Without a body, the metadata does not change.
    200: Done.
    """
    metadata = read_metadata(call.json(), call.settings.limits) if call.body else None

    def replace(tx: Transaction) -> Response:
        file = permission.writable_file(tx, call)
        call.require_match(file.version)
        if metadata not in {None, file.metadata}:
            after = store.update_metadata(tx, call, file, metadata or "{}")
            events.emit_metadata(tx, call, before=file, after=after)
        return NO_CONTENT

    return Work(act=replace)


async def get_file(call: Call) -> Response:
    """Get a file's storage information.

    The file exists also before anything is uploaded.
    200: The file.
    """

    def find(reader: ReadTransaction) -> tuple[int, FileRecord]:
        file = permission.readable_file(reader, call, uploading=True)
        return file.version, events.read_record(reader, file)

    version, record = await call.store.read(find)
    return versioned_response(call, record, version)


async def list_files(call: Call) -> Response:
    """List files.

    The files of a workspace, the oldest first.
    200: The files.
    """
    may_list = call.principal is not None and call.principal.may_somewhere(FILES_READ)
    if not may_list and as_uuid(call.query.get("workspaceId", "")) is None:
        raise permission.reading_refusal(call)  # before the response says anything about the query
    workspace_id = read_workspace_id(call.query)
    page = read_list_page(call, SORTABLE)

    def find(reader: ReadTransaction) -> tuple[int, list[FileRecord]]:
        found = store.list_files(reader, permission.readable_workspace(reader, call, workspace_id))
        return len(found), [events.read_record(reader, file) for file in select_page(page, found, SORTABLE)]

    return await list_response(call, page, find)


async def list_versions(call: Call) -> Response:
    """List the versions of a file.

    Every upload of the file, the newest first.
    200: The versions.
    """
    page = read_list_page(call, SORTABLE_VERSIONS)

    def find(reader: ReadTransaction) -> tuple[int, list[FileVersionRecord]]:
        file = permission.readable_file(reader, call)
        found = store.list_versions(reader, file)
        if page.descending or "sortOrder" in call.query:
            found.reverse()  # the newest is first, but `select_page` applies ``sortOrder`` to an ascending list
        versions = select_page(page, found, SORTABLE_VERSIONS, tie="ordinal")
        return len(found), [
            version_record(version, current=version.ordinal == file.current_version) for version in versions
        ]

    return await list_response(call, page, find)


def retry_conversion(tx: Transaction, call: Call, retry: ConversionRetry) -> Response:
    """Convert a file again (contract CS5, C7).

    A pending conversion does not change. A conversion in progress is started again only if `force` is true.
    200: It is pending.
    """
    file = permission.writable_file(tx, call)
    if file.conversion is not None and conversion_store.queue_again(
        tx, file.conversion, force=retry.force, now=call.now
    ):
        events.note_retry(tx, call, file)
    return NO_CONTENT


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations on stored files."""
    write = {"anywhere": True, "body_bytes": limits.body_bytes}
    read = {"anywhere": True, "anonymous": True}
    retry, versions = f"{COLLECTION}/retry-conversion/{{file}}", f"{COLLECTION}/version-list/{{file}}"
    return (
        delete("cloud_storage.delete", _ONE, FILES_WRITE, delete_file, anywhere=True).described(
            query=(OF_WORKSPACE,), etag=True
        ),
        patch("cloud_storage.update", _ONE, FILES_WRITE, update_file, **write).described(
            body=RequestBody(FileChanges, {"description": "As measured"}, required=False), etag=True
        ),
        get("cloud_storage.get_metadata", _METADATA, FILES_READ, get_metadata, **read).described(
            success=Success(OBJECT), etag=True
        ),
        put(
            "cloud_storage.replace_metadata",
            _METADATA,
            FILES_WRITE,
            prepare=replace_metadata,
            anywhere=True,
            body_bytes=limits.body_bytes,
        ).described(body=RequestBody(ref("Metadata"), {"material": "AlSi10Mg"}, required=False), etag=True),
        get("cloud_storage.get", _ONE, FILES_READ, get_file, **read).described(success=Success(FileRecord), etag=True),
        get("cloud_storage.list", COLLECTION, FILES_READ, list_files, **read).described(
            success=listed(FileRecord), query=(OF_WORKSPACE, *paging(limits, SORTABLE))
        ),
        get("cloud_storage.list_versions", versions, FILES_READ, list_versions, **read).described(
            success=listed(FileVersionRecord), query=paging(limits, SORTABLE_VERSIONS, order="DESC")
        ),
        post("cloud_storage.retry_conversion", retry, FILES_WRITE, retry_conversion, **write).described(
            body=RequestBody(ConversionRetry, {"force": True}, required=False)
        ),
    )
