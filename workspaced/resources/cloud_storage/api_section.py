"""The section of the API description for files."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import OBJECT, STRING, UUID, described, record_schemas, ref
from workspaced.core.members import body_schemas
from workspaced.http.openapi.description import (
    ApiSection,
    Body,
    OperationDescription,
    Parameter,
    Success,
    links,
    listed,
)
from workspaced.http.openapi.shared import paging
from workspaced.resources.cloud_storage.file_routes import SORTABLE, SORTABLE_VERSIONS
from workspaced.resources.cloud_storage.records import FileRecord, FileVersionRecord, UploadLinkRecord, UploadRecord
from workspaced.resources.cloud_storage.rules import (
    ConversionRetry,
    FileChanges,
    FileName,
    MediaType,
    NewUpload,
    Sha256,
    UploadCompletion,
)
from workspaced.settings.model import Limits

_WORKSPACE: Final = Parameter("workspaceId", "The workspace.", UUID, required=True)
_ABOUT: Final = """\
Files belong to a workspace. Bytes are sent to a signed link in three steps (`upload-link`, PUT, `upload-complete`), or in
one request. Each upload is a version. The outputs of a file's conversion can be downloaded.

The response for a file that does not exist is the same as for a file that the caller may not read: 403.
"""
_OF_FILE: Final = {"id": "$response.body#/id"}
_CONFLICTS: Final = "`id_in_use`: the id is in use. `quota_exceeded`: the workspace or file holds as much as it may."
_FULL: Final = "`storage_full`, `storage_failed`: the bytes can't be stored."
_RAW: Final = Body({}, None, media="application/octet-stream")
_LINKS: Final = links(
    _OF_FILE,
    get="cloud_storage.get",
    getMetadata="cloud_storage.get_metadata",
    replaceMetadata="cloud_storage.replace_metadata",
    update="cloud_storage.update",
    listVersions="cloud_storage.list_versions",
    download="cloud_storage.download",
    retryConversion="cloud_storage.retry_conversion",
)


def api_section(limits: Limits) -> ApiSection:
    """Return the section: reading, changing and uploading files."""
    about = f"Any object of at most {limits.metadata_bytes} bytes, nested {limits.metadata_depth} levels deep."
    return ApiSection(
        title="Cloud storage",
        description=_ABOUT,
        operations=(*_reads(limits), *_changes(), *_uploads(limits)),
        path={
            "file": Parameter("id", "The file.", UUID),
            "upload": Parameter("uploadId", "The upload that the link is for.", UUID),
        },
        schemas={
            **record_schemas(FileRecord, FileVersionRecord, UploadLinkRecord, UploadRecord),
            **body_schemas(limits, NewUpload, UploadCompletion, ConversionRetry, FileChanges),
            "Metadata": described(OBJECT, about),
        },
    )


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    headers = ("Disposition", "Ranges")
    return (
        OperationDescription(
            "cloud_storage.list",
            "List files",
            "The files of a workspace, the oldest first.",
            listed("The files.", "File"),
            query=(_WORKSPACE, *paging(limits, SORTABLE)),
        ),
        OperationDescription(
            "cloud_storage.get",
            "Get a file's storage information",
            "Also before anything is uploaded.",
            Success("The file.", ref("File")),
            etag=True,
        ),
        OperationDescription(
            "cloud_storage.list_versions",
            "List the versions of a file",
            "Every upload of the file, the newest first.",
            listed("The versions.", "FileVersion"),
            query=paging(limits, SORTABLE_VERSIONS, order="DESC"),
        ),
        OperationDescription(
            "cloud_storage.get_metadata",
            "Get a file's metadata",
            "The object that users store with the file; `{}` at first.",
            Success("The metadata.", OBJECT),
            etag=True,
        ),
        OperationDescription(
            "cloud_storage.download",
            "Download a file",
            "The bytes of the current version, of another version, or of an output of the conversion.",
            Success("The bytes.", {}, media="*/*", headers=headers),
            partial=Success("A range of them.", {}, status=206, media="*/*", headers=(*headers, "ContentRange")),
            query=(
                Parameter("versionId", "Another version than the current one.", UUID),
                Parameter("output", "An output of the conversion, by its name.", STRING),
            ),
            refusals={
                403: "`exports_disabled`: files of the workspace may not be downloaded.",
                412: "If-Match names other bytes.",
                416: "`range_not_satisfiable`: it begins after the end.",
                503: "`bytes_missing`, `storage_failed`: the bytes can't be read.",
            },
            etag=True,
            headers=("IfMatch", "Range", "IfRange"),
        ),
    )


def _changes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            "cloud_storage.update",
            "Change a file's storage information",
            "Only the given members change.",
            Success("Done."),
            body=Body(ref("FileChanges"), {"description": "As measured"}, required=False),
            etag=True,
        ),
        OperationDescription(
            "cloud_storage.delete",
            "Delete a file",
            "The query must name the file's workspace.",
            Success("It is deleted."),
            query=(_WORKSPACE,),
            etag=True,
        ),
        OperationDescription(
            "cloud_storage.replace_metadata",
            "Replace a file's metadata",
            "The whole object; without a body it does not change.",
            Success("Done."),
            body=Body(ref("Metadata"), {"material": "AlSi10Mg"}, required=False),
            etag=True,
        ),
        OperationDescription(
            "cloud_storage.retry_conversion",
            "Convert a file again",
            "A conversion that is pending or in progress is not started twice, unless `force` is true.",
            Success("It is pending."),
            body=Body(ref("ConversionRetry"), {"force": True}, required=False),
        ),
    )


def _uploads(limits: Limits) -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            "cloud_storage.upload_link",
            "Ask for an upload link",
            "Announces a file, or another version of a file. The link is valid once, and for some minutes.",
            Success(
                "Where to send the bytes.",
                ref("UploadLink"),
                status=201,
                headers=("Location", "Cache"),
                links=links(_OF_FILE, get="cloud_storage.get"),
            ),
            body=Body(
                ref("NewUpload"), {"workspaceId": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "fileName": "masses.csv"}
            ),
            refusals={409: _CONFLICTS},
        ),
        OperationDescription(
            "cloud_storage.receive",
            "Send bytes to a link",
            "The body is the file, of any type. If it is compressed with gzip, it is stored uncompressed. "
            "No key is needed: the link is signed.",
            Success("The bytes that arrived.", ref("Upload")),
            query=(
                Parameter("expires", "As in the link.", STRING, required=True),
                Parameter("signature", "As in the link.", STRING, required=True),
            ),
            body=_RAW,
            refusals={
                403: "`bad_upload_link`, `upload_link_expired`, `upload_link_revoked`, or the file is deleted.",
                409: "`upload_link_used`: bytes were sent to this link before.",
                503: _FULL,
            },
        ),
        OperationDescription(
            "cloud_storage.upload_complete",
            "Complete an upload",
            "Makes the bytes that were sent to a link the file's current version.",
            Success("The file.", ref("File"), headers=("ETag",), links=_LINKS),
            body=Body(ref("UploadCompletion"), {}, required=False),
            refusals={
                409: "`quota_exceeded`: the workspace or file holds as much as it may. `not_uploaded`: nothing was sent yet.",
                422: "`sha256_mismatch`, `size_mismatch`: other bytes were sent.",
            },
        ),
        OperationDescription(
            "cloud_storage.upload",
            "Upload a file",
            "A file, or another version of a file, in one request: the body is its bytes, of any type. If they are "
            "compressed with gzip, they are stored uncompressed.",
            Success("The file.", ref("File"), status=201, headers=("ETag", "Location"), links=_LINKS),
            query=(
                _WORKSPACE,
                Parameter("fileName", "Its name.", FileName().schema(limits), required=True),
                Parameter("contentType", "Its type; by default that of the header.", MediaType().schema(limits)),
                Parameter("id", "The id of a file that gets another version.", UUID),
                Parameter("sha256", "The SHA-256 that the bytes must have.", Sha256(description="").schema(limits)),
            ),
            body=_RAW,
            refusals={409: _CONFLICTS, 503: _FULL, 422: "`sha256_mismatch`: other bytes were sent."},
        ),
    )
