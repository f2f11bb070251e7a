"""Files of cloud storage and their uploads (contract C1, C2, C9, C10). A missing file is ``Forbidden``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.checks import check_sha256
from ingestd.client.content import AsyncSource, Outgoing
from ingestd.client.declarations import (
    ChangeOptions,
    CreateOptions,
    IterOptions,
    ListOptions,
    custom,
    declare,
    headers_of,
    paged,
    query_of,
    streamed,
)
from ingestd.client.readers import read_nothing, reader
from ingestd.client.records import FileInfo, FileVersion, Upload, UploadLink
from ingestd.client.request import RecordStream, Request

_FILE = reader(FileInfo)
_UPLOAD = reader(Upload)
_BINARY = "application/octet-stream"


def download(file: str, *, version_id: str | None, output: str | None) -> Request[None]:
    """Return the request for the bytes of a file, of one of its versions, or of an output of its conversion."""
    return Request(
        operation=operations.DOWNLOAD_FILE,
        read=read_nothing,
        path={"file": file},
        query=query_of({"versionId": version_id, "output": output}),
        headers={"Accept": "*/*"},
    )


def _metadata(body: bytes, _headers: Mapping[str, str]) -> dict[str, Any]:
    # The interface document lists "no content" for this response, too.
    return msgspec.json.decode(body, type=dict[str, Any]) if body.strip() else {}


class FileMethods:
    """Files of cloud storage."""

    @declare(operations.GET_FILE)
    def get_file(self, file: str, *, if_none_match: str | None = None) -> FileInfo:
        """Return the storage information of a file, also before its bytes have arrived."""

    @declare(operations.LIST_FILES)
    def list_files(self, workspace_id: str, **options: Unpack[ListOptions]) -> tuple[FileInfo, ...]:
        """Return the files of a workspace; with ``take`` or ``skip``, a part of them."""

    @paged(list_files, page_length=200)
    def iter_files(self, workspace_id: str, **options: Unpack[IterOptions]) -> Iterator[FileInfo]:
        """Return the files of a workspace, read page by page."""

    @declare(operations.UPDATE_FILE)
    def update_file(
        self,
        file: str,
        *,
        file_name: str | UnsetType = UNSET,
        content_type: str | UnsetType | None = UNSET,
        description: str | UnsetType | None = UNSET,
        tags: str | UnsetType | None = UNSET,
        **options: Unpack[ChangeOptions],
    ) -> None:
        """Change the given members of a file's storage information."""

    @declare(operations.DELETE_FILE)
    def delete_file(self, file: str, *, workspace_id: str, **options: Unpack[ChangeOptions]) -> None:
        """Remove a file of a workspace."""

    @declare(operations.GET_METADATA, read=_metadata)
    def get_metadata(self, file: str, *, if_none_match: str | None = None) -> dict[str, Any]:
        """Return the metadata of a file; its version is the file's."""

    @declare(operations.REPLACE_METADATA, body="metadata")
    def replace_metadata(self, file: str, metadata: Mapping[str, Any], **options: Unpack[ChangeOptions]) -> None:
        """Replace the whole metadata of a file."""

    @declare(operations.RETRY_CONVERSION)
    def retry_conversion(self, file: str, *, force: bool | UnsetType = UNSET, **options: Unpack[CreateOptions]) -> None:
        """Convert a file again; while a conversion runs, only with ``force``."""

    @declare(operations.LIST_FILE_VERSIONS)
    def list_file_versions(self, file: str, **options: Unpack[ListOptions]) -> tuple[FileVersion, ...]:
        """Return every upload of a file, the newest first; with ``take`` or ``skip``, a part of them."""

    @paged(list_file_versions, page_length=200, identity=attrgetter("version_id"))
    def iter_file_versions(self, file: str, **options: Unpack[IterOptions]) -> Iterator[FileVersion]:
        """Return every upload of a file, read page by page."""

    @declare(operations.UPLOAD_LINK)
    def create_upload_link(
        self,
        workspace_id: str,
        *,
        file_name: str,
        content_type: str | UnsetType = UNSET,
        size: int | UnsetType = UNSET,
        sha256: str | UnsetType = UNSET,
        id: str | UnsetType = UNSET,  # noqa: A002 - the contract's own name
        **options: Unpack[CreateOptions],
    ) -> UploadLink:
        """Return an address for a file's bytes. With the ``id`` of an existing file they become its next version."""

    @custom
    def upload_by_link(self, link: UploadLink, source: AsyncSource) -> Request[Upload]:
        """Send bytes to the address of a link; ``complete_upload`` then makes them the file's."""
        outgoing = Outgoing(source)
        return Request(
            operation=operations.SEND_UPLOAD,
            read=_UPLOAD,
            url=link.upload_url,
            content=outgoing,
            headers={"Content-Type": _BINARY, **link.headers, **outgoing.headers},
            check=lambda stored: check_sha256(stored.sha256, outgoing.sha256),
        )

    @declare(operations.COMPLETE_UPLOAD)
    def complete_upload(
        self,
        file: str,
        *,
        upload_id: str | UnsetType = UNSET,
        sha256: str | UnsetType = UNSET,
        **options: Unpack[CreateOptions],
    ) -> FileInfo:
        """Make the bytes sent by a link the file's current version. Another size or digest is ``Unprocessable``."""

    @custom
    def upload_file(
        self,
        workspace_id: str,
        source: AsyncSource,
        *,
        file_name: str | None = None,
        content_type: str | None = None,
        sha256: str | None = None,
        id: str | None = None,  # noqa: A002 - the contract's own name
        client_id: str | None = None,
    ) -> Request[FileInfo]:
        """Upload a file in one request, in chunks. With the ``id`` of an existing file it becomes its next version.

        ``file_name``: by default the name of the file in ``source``. ``sha256``: the service rejects other bytes
        (``Unprocessable``). Without it, the client compares the stored digest with the bytes that it sent.

        Raises:
            ValueError: the source has no name, and none is given.
        """
        outgoing = Outgoing(source)
        name = file_name or outgoing.file_name
        if name is None:
            raise ValueError("An upload needs a file_name, unless its source is a Path.")
        query = {"workspaceId": workspace_id, "fileName": name, "contentType": content_type, "sha256": sha256, "id": id}
        return Request(
            operation=operations.UPLOAD_FILE,
            read=_FILE,
            query=query_of(query),
            content=outgoing,
            headers={
                **headers_of({"client_id": client_id}),
                "Content-Type": content_type or _BINARY,
                **outgoing.headers,
            },
            check=lambda file: check_sha256(file.sha256, outgoing.sha256),
        )

    @streamed
    def iter_file(self, file: str, *, version_id: str | None = None, output: str | None = None) -> RecordStream[bytes]:
        """Return the bytes of a file, of one of its versions, or of an ``output`` of its conversion, in chunks.

        Close the generator if you leave it early (``contextlib.closing``, ``aclosing``).
        """
        request = download(file, version_id=version_id, output=output)
        return RecordStream(request=request, feed=lambda chunk: (chunk,), finish=lambda: None)
