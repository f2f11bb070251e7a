"""The bytes of files, which travel in pieces; the clients' own methods bring or take the pieces."""

from __future__ import annotations

from ingestd.client import operations
from ingestd.client.content import Outgoing
from ingestd.client.decoding import Mismatch, nothing
from ingestd.client.reading import one, versioned
from ingestd.client.records import FileInfo, Upload, UploadLink
from ingestd.client.request import Request
from ingestd.client.requests.building import headers, query

_FILE = versioned(FileInfo)
_UPLOAD = one(Upload)
_UNTYPED = "application/octet-stream"


def upload(
    workspace_id: str,
    outgoing: Outgoing,
    *,
    file_name: str | None,
    content_type: str | None,
    sha256: str | None,
    id: str | None,  # noqa: A002 - the contract's own name
    client_id: str | None,
) -> Request[FileInfo]:
    """One request with the file as its body. The answer has to have the digest of what was sent.

    Raises:
        ValueError: there is no name for it.
    """
    name = file_name or outgoing.file_name
    if name is None:
        raise ValueError("What is no file needs a file_name to be uploaded under.")
    return Request(
        operation=operations.UPLOAD_FILE,
        read=_FILE,
        query=query(workspaceId=workspace_id, fileName=name, contentType=content_type, sha256=sha256, id=id),
        headers={
            **headers(client_id=client_id),
            "Content-Type": content_type or _UNTYPED,
            **outgoing.headers,
        },
        check=lambda file: _expect(outgoing, file.sha256),
    )


def upload_by_link(link: UploadLink, outgoing: Outgoing) -> Request[Upload]:
    """The bytes to where the link says, without the API key."""
    return Request(
        operation=operations.SEND_UPLOAD,
        read=_UPLOAD,
        url=link.upload_url,
        headers={"Content-Type": _UNTYPED, **link.headers, **outgoing.headers},
        check=lambda sent: _expect(outgoing, sent.sha256),
    )


def download(
    file: str, *, version_id: str | None, output: str | None, if_none_match: str | None = None
) -> Request[None]:
    """The bytes of a file, of one of its versions, or of what its conversion made."""
    return Request(
        operation=operations.DOWNLOAD_FILE,
        read=nothing,
        names={"file": file},
        query=query(versionId=version_id, output=output),
        headers={**headers(if_none_match=if_none_match), "Accept": "*/*"},
    )


def _expect(outgoing: Outgoing, arrived: str | None) -> None:
    if arrived != outgoing.sha256:
        raise Mismatch("It has bytes of another SHA-256 than were sent.")
