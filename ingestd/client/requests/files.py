"""Files of cloud storage and their uploads (contract C1, C2, C9, C10). A missing one is ``Forbidden``, as documented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.decoding import nothing
from ingestd.client.paging import Listing
from ingestd.client.reading import many, one, versioned
from ingestd.client.records import FileInfo, FileVersion, UploadLink
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query

_FILE = versioned(FileInfo)
_FILES = many(FileInfo)
_VERSIONS = many(FileVersion)
_LINK = one(UploadLink)
_OBJECT = one(dict[str, Any])


def get_file(file: str, *, if_none_match: str | None = None) -> Request[FileInfo]:
    """The storage information of a file, also of one whose bytes are still to come."""
    return Request(
        operation=operations.GET_FILE,
        read=_FILE,
        names={"file": file},
        headers=headers(if_none_match=if_none_match),
    )


def list_files(
    workspace_id: str,
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[FileInfo, ...]]:
    """The files of a workspace, or a stretch of them."""
    return Request(
        operation=operations.LIST_FILES,
        read=_FILES,
        query=query(workspaceId=workspace_id, take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def iter_files(
    workspace_id: str, *, sort_order: SortOrder | None = None, sorted_by: str | None = None, page_length: int = 200
) -> Listing[FileInfo]:
    """The same, asked for page by page."""
    whole = list_files(workspace_id, sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda file: file.id)


def update_file(
    file: str,
    *,
    file_name: str | UnsetType = UNSET,
    content_type: str | UnsetType | None = UNSET,
    description: str | UnsetType | None = UNSET,
    tags: str | UnsetType | None = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[None]:
    """Change what is given of a file's storage information."""
    return Request(
        operation=operations.UPDATE_FILE,
        read=nothing,
        names={"file": file},
        body=members(fileName=file_name, contentType=content_type, description=description, tags=tags),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def delete_file(
    file: str, *, workspace_id: str, if_match: str | None = None, client_id: str | None = None
) -> Request[None]:
    """Remove a file of a workspace."""
    return Request(
        operation=operations.DELETE_FILE,
        read=nothing,
        names={"file": file},
        query=query(workspaceId=workspace_id),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def _metadata(body: bytes, answered: Mapping[str, str]) -> dict[str, Any]:
    # The document lists this answer as "no content", too.
    return _OBJECT(body, answered) if body.strip() else {}


def get_metadata(file: str, *, if_none_match: str | None = None) -> Request[dict[str, Any]]:
    """The metadata of a file; its version is the file's."""
    return Request(
        operation=operations.GET_METADATA,
        read=_metadata,
        names={"file": file},
        headers=headers(if_none_match=if_none_match),
    )


def replace_metadata(
    file: str, metadata: Mapping[str, Any], *, if_match: str | None = None, client_id: str | None = None
) -> Request[None]:
    """Replace the metadata of a file, whole."""
    return Request(
        operation=operations.REPLACE_METADATA,
        read=nothing,
        names={"file": file},
        body=msgspec.json.encode(metadata),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def retry_conversion(
    file: str, *, force: bool | UnsetType = UNSET, idempotency_key: str | None = None, client_id: str | None = None
) -> Request[None]:
    """Have a file converted once more; one that is being converted only with ``force``."""
    return Request(
        operation=operations.RETRY_CONVERSION,
        read=nothing,
        names={"file": file},
        body=members(force=force),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def list_file_versions(
    file: str,
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[FileVersion, ...]]:
    """Every upload of a file, the newest first; or a stretch of them."""
    return Request(
        operation=operations.LIST_FILE_VERSIONS,
        read=_VERSIONS,
        names={"file": file},
        query=query(take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def iter_file_versions(
    file: str, *, sort_order: SortOrder | None = None, sorted_by: str | None = None, page_length: int = 200
) -> Listing[FileVersion]:
    """The same, asked for page by page."""
    whole = list_file_versions(file, sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda version: version.version_id)


def create_upload_link(
    workspace_id: str,
    *,
    file_name: str,
    content_type: str | UnsetType = UNSET,
    size: int | UnsetType = UNSET,
    sha256: str | UnsetType = UNSET,
    id: str | UnsetType = UNSET,  # noqa: A002 - the contract's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[UploadLink]:
    """Where to send a file's bytes; with the ``id`` of a file that exists, they become its next version."""
    return Request(
        operation=operations.UPLOAD_LINK,
        read=_LINK,
        body=members(
            workspaceId=workspace_id, fileName=file_name, contentType=content_type, size=size, sha256=sha256, id=id
        ),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def complete_upload(
    file: str,
    *,
    upload_id: str | UnsetType = UNSET,
    sha256: str | UnsetType = UNSET,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[FileInfo]:
    """Make what was sent by a link the file's current version; ``Unprocessable`` where size or digest differ."""
    return Request(
        operation=operations.COMPLETE_UPLOAD,
        read=_FILE,
        names={"file": file},
        body=members(uploadId=upload_id, sha256=sha256),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )
