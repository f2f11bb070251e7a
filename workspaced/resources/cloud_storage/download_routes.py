"""The bytes of a file: whole or a range of them, of any version, or of what its conversion made (contract C8)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from workspaced.core.problems import ForbiddenProblem
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, etag
from workspaced.resources.cloud_storage import permission, store
from workspaced.resources.cloud_storage.disposition import attachment
from workspaced.resources.cloud_storage.ranges import stretch
from workspaced.resources.cloud_storage.upload_routes import COLLECTION
from workspaced.resources.cloud_storage.values import StoredFile
from workspaced.resources.operation_rows import read_operation
from workspaced.security.permissions import FILES_READ
from workspaced.storage.blobs.port import Blobs
from workspaced.storage.port import ReadTransaction


class ExportsDisabled(ForbiddenProblem):
    """The workspace gives no files away (contract A7)."""

    def __init__(self) -> None:
        super().__init__()
        self.code = "exports_disabled"
        self.detail = "The files of this workspace can't be downloaded: its exportsEnabled is false."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be sent, and under which name."""

    file_name: str
    content_type: str
    sha256: str
    size: int


class _Downloads:
    """The operation, over the place where bytes are kept."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def download(self, call: Call) -> Response:
        """Answers 200, 206, 304, or what is refused; never in a form that a browser would run."""
        wanted = await call.store.read(lambda reader: _wanted(reader, call))
        tag = etag(wanted.sha256)
        call.require_match(wanted.sha256)
        if call.has_seen(wanted.sha256):
            return Response(status=304, headers=(tag,))
        part = stretch(call.headers.get("Range"), call.headers.get("If-Range"), etag=tag[1], size=wanted.size)
        headers = [
            ("Content-Type", wanted.content_type),
            ("Content-Length", str(part.length)),
            ("Content-Disposition", attachment(wanted.file_name)),
            ("Accept-Ranges", "bytes"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
            tag,
        ]
        if not part.whole:
            last = part.start + part.length - 1
            headers.append(("Content-Range", f"bytes {part.start}-{last}/{wanted.size}"))
        status = 200 if part.whole else 206
        if not call.wants_body or not part.length:
            return Response(status=status, headers=tuple(headers))
        parts = self._blobs.read(wanted.sha256, start=part.start, length=part.length)
        first = await anext(parts)  # bytes that can't be read are told now, while there is a status to tell it by
        return Response(status=status, headers=tuple(headers), parts=_after(first, parts))


async def _after(first: bytes, others: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(others):
        yield first
        async for part in others:
            yield part


def _wanted(reader: ReadTransaction, call: Call) -> _Wanted:
    """What the path and the query mean.

    Raises:
        Unauthenticated: the caller has no key, and the file is not public.
        ForbiddenProblem: there is no such file, version or output for this caller; or files may not be downloaded at all.
    """
    file = permission.readable_file(reader, call)
    if not file.exports_enabled:
        raise ExportsDisabled
    version, content = _version(reader, call, file)
    output_name = call.query.get("output")
    if output_name is None:
        return content
    for output in store.list_outputs(reader, version):
        if output.name == output_name:
            return _Wanted(
                file_name=output.name, content_type=output.content_type, sha256=output.sha256, size=output.size
            )
    raise ForbiddenProblem


def _version(reader: ReadTransaction, call: Call, file: StoredFile) -> tuple[int, _Wanted]:
    """The version that is asked for, by its number, and its bytes; the current one has the name that the file has now."""
    version_id = call.query.get("versionId")
    if version_id is None or as_uuid(version_id) == file.version_id:
        if file.version_number is None or file.sha256 is None or file.size is None:
            raise ForbiddenProblem
        current = _Wanted(file_name=file.file_name, content_type=file.content_type, sha256=file.sha256, size=file.size)
        return file.version_number, current
    version = store.find_version(reader, file, as_uuid(version_id) or "")
    if version is None:
        raise ForbiddenProblem
    former = _Wanted(
        file_name=version.file_name, content_type=version.content_type, sha256=version.sha256, size=version.size
    )
    return version.number, former


def operations(blobs: Blobs) -> tuple[Operation, ...]:
    """The table's row."""
    return (
        read_operation(
            "cloud_storage.download",
            f"{COLLECTION}/download/{{file}}",
            FILES_READ,
            _Downloads(blobs).download,
            anywhere=True,
            anonymous=True,
        ),
    )
