"""The operation that downloads a version or an output, or a range of its bytes (contract C8)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple
from urllib.parse import quote

from workspaced.core.json_schema import STRING, UUID
from workspaced.core.problems import ForbiddenProblem, RangeNotSatisfiable
from workspaced.core.text import as_uuid
from workspaced.http.description import Parameter, Success
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, etag
from workspaced.resources.cloud_storage import permission, store
from workspaced.resources.cloud_storage.upload_routes import COLLECTION
from workspaced.resources.cloud_storage.values import FileContent, StoredFile, StoredVersion
from workspaced.resources.operation_rows import get
from workspaced.security.permissions import FILES_READ
from workspaced.storage.blobs.blobs import Blobs
from workspaced.storage.port import ReadTransaction

# attr-char of RFC 8187 without letters and digits, which `quote` never escapes
_PLAIN = "!#$&+-.^_`|~"
_RANGE = re.compile(
    r"bytes[ \t]*=[ \t]*(?:(?P<first>\d{1,18})-(?P<last>\d{1,18})?|-(?P<suffix>\d{1,18}))[ \t]*", re.ASCII
)


class _Downloads:
    """The handler of downloads. ``blobs`` has the bytes of the files."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def download(self, call: Call) -> Response:
        """Download a file.

        The bytes of the current version, of another version, or of an output of the conversion.
        200: The bytes.
        206: A range of the bytes.
        403: `exports_disabled`: files of the workspace may not be downloaded.
        412: If-Match names other bytes.
        416: `range_not_satisfiable`: the range begins after the last byte.
        503: `bytes_missing`, `bytes_damaged`, `storage_failed`: the bytes can't be read.
        """
        content = await call.store.read(lambda reader: _find_content(reader, call))
        tag = etag(content.sha256)
        call.require_match(content.sha256)
        if call.has_seen(content.sha256):
            return Response(status=304, headers=(tag,))
        part = select_range(call.headers.get("Range"), call.headers.get("If-Range"), etag=tag[1], size=content.size)
        headers = [
            ("Content-Type", content.content_type),
            ("Content-Length", str(part.length)),
            ("Content-Disposition", attachment(content.file_name)),
            ("Accept-Ranges", "bytes"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
            tag,
        ]
        if not part.whole:
            last = part.start + part.length - 1
            headers.append(("Content-Range", f"bytes {part.start}-{last}/{content.size}"))
        status = 200 if part.whole else 206
        if not call.wants_body or not part.length:
            return Response(status=status, headers=tuple(headers))
        parts = self._blobs.read(content.sha256, start=part.start, length=part.length)
        first = await anext(parts)  # read before the response starts, so that a failure still has its own status
        return Response(status=status, headers=tuple(headers), parts=_chain(first, parts))


async def _chain(first: bytes, others: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(others):
        yield first
        async for part in others:
            yield part


def _find_content(reader: ReadTransaction, call: Call) -> FileContent:
    """Return the content that the path and the query name. Raises a Problem: the caller may not read this content."""
    file = permission.readable_file(reader, call)
    if not file.exports_enabled:
        detail = "The files of this workspace can't be downloaded: its exportsEnabled is false."
        raise ForbiddenProblem(detail, code="exports_disabled")  # contract A7
    version, content = _find_version(reader, call, file)
    output_name = call.query.get("output")
    if output_name is None:
        return content
    for output in store.list_outputs(reader, version):
        if output.name == output_name:
            return FileContent(
                file_name=output.name, content_type=output.content_type, sha256=output.sha256, size=output.size
            )
    raise ForbiddenProblem


def _find_version(reader: ReadTransaction, call: Call, file: StoredFile) -> tuple[int, FileContent]:
    """Return the number and the content of the version in the query. The current version has the file's present name."""
    version_id = call.query.get("versionId")
    if version_id is None or as_uuid(version_id) == file.version_id:
        if file.version_number is None or file.sha256 is None or file.size is None:
            raise ForbiddenProblem
        named: StoredFile | StoredVersion = file
        number, sha256, size = file.version_number, file.sha256, file.size
    else:
        version = store.find_version(reader, file, as_uuid(version_id) or "")
        if version is None:
            raise ForbiddenProblem
        named = version
        number, sha256, size = version.number, version.sha256, version.size
    return number, FileContent(file_name=named.file_name, content_type=named.content_type, sha256=sha256, size=size)


def operations(blobs: Blobs) -> tuple[Operation, ...]:
    """Return the operation that downloads bytes."""
    headers = ("Disposition", "Ranges")
    return (
        get(
            "cloud_storage.download",
            f"{COLLECTION}/download/{{file}}",
            FILES_READ,
            _Downloads(blobs).download,
            anywhere=True,
            anonymous=True,
        ).described(
            success=Success({}, headers, media="*/*"),
            partial=Success({}, (*headers, "ContentRange"), status=206, media="*/*"),
            query=(
                Parameter("versionId", "A version other than the current version.", UUID),
                Parameter("output", "The name of an output of the conversion.", STRING),
            ),
            etag=True,
            headers=("IfMatch", "Range", "IfRange"),
        ),
    )


def attachment(file_name: str) -> str:
    """Return the value of Content-Disposition. A client that reads only ``filename`` gets the most similar ASCII name."""
    decomposed = unicodedata.normalize("NFKD", file_name)
    ascii_name = "".join(
        letter if " " <= letter <= "~" and letter not in '"\\%' else "_"
        for letter in decomposed
        if not unicodedata.combining(letter)
    )
    value = f'attachment; filename="{ascii_name}"'
    return value if ascii_name == file_name else f"{value}; filename*=UTF-8''{quote(file_name, safe=_PLAIN)}"


class ByteRange(NamedTuple):
    """``length`` bytes from ``start`` on; ``whole``: the response is the whole file."""

    start: int
    length: int
    whole: bool


def select_range(range_header: str | None, if_range: str | None, *, etag: str, size: int) -> ByteRange:
    """Return the range of a file to send. Several ranges and malformed headers select the whole file of ``size`` bytes.

    Raises:
        RangeNotSatisfiable: the range starts after the last byte.
    """
    whole = ByteRange(start=0, length=size, whole=True)
    match = _RANGE.fullmatch(range_header or "")
    # A date in If-Range can't be compared exactly, and a weak tag may not be compared: both cases select the whole file.
    if not match or (if_range is not None and if_range.strip() != etag):
        return whole
    if match["suffix"] is not None:
        length = min(int(match["suffix"]), size)
        if not length:
            raise RangeNotSatisfiable(size)
        return ByteRange(start=size - length, length=length, whole=False)
    first = int(match["first"])
    last = min(int(match["last"]), size - 1) if match["last"] is not None else size - 1
    if match["last"] is not None and int(match["last"]) < first:
        return whole
    if first >= size:
        raise RangeNotSatisfiable(size)
    return ByteRange(start=first, length=last - first + 1, whole=False)
